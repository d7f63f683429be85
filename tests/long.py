"""Tests that take long, and are left to the slow set: shorter ones hold the same in every run, or other members do.

Of a test with cases those that are named are long; all of them where none is. `tests/conftest.py` marks them.
"""

LONG: dict[str, dict[str, list[str]]] = {
    "benchmarks/test_leaderboard_anchoring.py": {
        "test_anchored_intervals_hold_where_those_of_judges_do_not": [],
    },
    "benchmarks/test_linkage.py": {
        "test_what_a_process_measures": [],
        "test_what_large_files_take": [],
    },
    "benchmarks/test_mpa.py": {
        "test_every_method_chooses_a_label_that_the_mention_got": ["measure3", "measure4"],
    },
    "benchmarks/test_spa.py": {
        "test_everything_is_recorded": [],
    },
    "benchmarks/test_views.py": {
        "test_packaged_data_have_known_views": [],
    },
    "consilience/test_best_system.py": {
        "test_annotators_are_trusted_less_and_more_where_the_sampler_can": ["ranks0-tried0"],
        "test_intervals_of_leads_are_the_wider_ones_and_corrected_for_their_number": [],
        "test_a_page_says_by_how_much_systems_lead_in_each_metric": [],
    },
    "consilience/test_checking.py": {
        "test_a_density_that_is_not_that_of_the_simulation_fails": ["transposed"],
        "test_density_and_simulation_are_compared_where_there_is_no_sampler": [],
        "test_items_that_share_parameters_are_not_taken_for_replications": [],
        "test_the_objective_of_em_is_the_log_likelihood_along_its_path": ["one-coin"],
        "test_the_table_holds_every_figure_with_its_bar": [],
        "test_members_pass": ["dirichlet-{}-0"],
        "test_a_posterior_that_is_too_wide_or_too_narrow_fails_both_tests": ["0.5"],
        "test_the_command_prints_the_figures": [],
        "test_a_wrong_truth_fails_calibration_though_the_sites_are_right": [],
    },
    "consilience/test_cli.py": {
        "test_a_process_that_is_stopped_can_be_resumed": ["SIGKILL"],
    },
    "consilience/test_command_outputs.py": {
        "test_written_where_nothing_is_and_by_force": ["report run --predictions system.csv -o"],
    },
    "consilience/test_first_screen.py": {
        "test_a_page_of_labels_begins_with_what_can_be_used": ["dawid-skene-True-8-said4"],
    },
    "consilience/test_gold_needed.py": {
        "test_a_page_of_rankings_says_whether_the_fit_expects_their_agreement": [],
    },
    "consilience/test_link_command.py": {
        "test_ctrl_c_keeps_what_was_drawn_and_says_how_to_go_on": ["510"],
    },
    "consilience/test_looked.py": {
        "test_a_page_says_whether_gold_labels_tell_of_an_own_look": [],
    },
    "consilience/test_sources.py": {
        "test_every_verb_takes_every_form": ["report-polars", "report-dict"],
        "test_groups_come_from_every_source": ["frame", "columns"],
    },
    "consilience/test_statements.py": {
        "test_rankings_stand_beside_what_is_inferred": [],
    },
    "data/test_degenerate.py": {
        "test_a_million_labels": [],
    },
    "evaluation/agreement/test_chance.py": {
        "test_every_item_twice": [],
    },
    "evaluation/agreement/test_monitoring.py": {
        "test_how_often_the_band_misses_the_truth_at_any_time": [],
    },
    "evaluation/agreement/test_planning.py": {
        "test_the_wanted_interval_is_had_on_new_items": [],
    },
    "evaluation/agreement/test_posterior.py": {
        "test_cifar10h_annotators_agree_more_than_a_tenth_of_an_annotation_a_class_allows": [],
        "test_a_function_of_ones_own_implies_the_agreement_of_its_draws": [],
    },
    "evaluation/clustering/test_baselines.py": {
        "test_figures_with_answers": [],
        "test_figures_of_meta_clustering": ["group-expected0", "own-expected1"],
    },
    "evaluation/test_another_label.py": {
        "test_mean_confusion_averages_annotators_by_how_much_they_annotate": ["mace"],
        "test_an_item_with_a_gold_label_needs_no_other": ["use"],
    },
    "evaluation/test_calibration.py": {
        "test_a_correct_sampler_passes": ["1"],
        "test_a_sampler_with_a_bug_fails": ["confusion transposed"],
    },
    "evaluation/test_certainties.py": {
        "test_a_million_classes_need_little_memory": [],
    },
    "evaluation/test_independent.py": {
        "test_scores_and_certainties_are_those_of_many_draws": ["dirichlet"],
        "test_systems_that_agree_often_vary_together": ["dirichlet"],
    },
    "evaluation/test_metrics.py": {
        "test_under_jit_and_vmap_over_items_and_draws": ["kendall-1", "overlap-2"],
    },
    "evaluation/test_own_look.py": {
        "test_refit_credits_an_own_look": ["options1"],
    },
    "evaluation/test_without_annotators.py": {
        "test_plackett_luce_agrees_with_refits_within_the_monte_carlo_error": [],
    },
    "inference/test_approximation.py": {
        "test_weights_average_to_the_evidence": ["mace", "mpa"],
        "test_chains_start_apart_near_the_approximation": ["mpa", "mace"],
    },
    "inference/test_fitting.py": {
        "test_a_prior_that_is_a_function_is_called_once": ["svi"],
    },
    "inference/test_saved.py": {
        "test_draws_of_an_own_function_come_back": ["nuts"],
    },
    "inference/test_sharding.py": {
        "test_devices_share_the_items_of_one_process": ["True-1e-12-fits0-several0"],
    },
    "inference/test_updating.py": {
        "test_an_update_is_the_fresh_fit": ["mace-cavi", "one-coin-cavi", "glad-cavi", "mace-em", "one-coin-em"],
        "test_chains_go_on_from_their_last_draws": ["mace", "one-coin"],
        "test_the_start_of_chains_is_what_the_last_draw_was": ["mace", "one-coin"],
        "test_what_auto_chose_by_the_data_is_chosen_anew": [],
        "test_short_chains_go_on_where_annotators_agree_by_chance": [],
    },
    "laws/test_laws.py": {
        "test_the_same_seed_gives_the_same_bits_also_after_loading": [
            "mace", "one-coin", "block-linkage", "hit-miss", "glad",
        ],
        "test_data_at_the_edge": [
            "one-coin-one annotation", "glad-a million classes", "mace-a million classes",
            "one-coin-a million classes", "mpa-an annotator who says one thing", "mpa-an unseen class",
            "plackett-luce-one item", "plackett-luce-one class", "plackett-luce-an annotator who says one thing",
            "plackett-luce-an unseen class", "plackett-luce-all tied", "plackett-luce-duplicates",
            "plackett-luce-a million classes", "one-coin-one item", "one-coin-an unseen class", "one-coin-duplicates",
            "mace-one item", "mace-an unseen class", "mace-duplicates", "one-coin-an annotator who says one thing",
            "one-coin-an item without annotations", "one-coin-all tied", "mace-one annotation", "mace-one class",
            "mace-an annotator who says one thing", "mace-all tied", "mpa-a million classes", "glad-one item",
            "glad-an unseen class", "glad-duplicates", "plackett-luce-one annotation",
            "plackett-luce-an item without annotations", "mpa-one class", "mpa-one annotation", "glad-one annotation",
            "mace-an item without annotations",
        ],
        "test_a_sampler_that_goes_on_ends_as_if_it_had_never_stopped": ["mace", "one-coin", "plackett-luce"],
        "test_an_item_without_annotations_has_the_prior": ["mace", "one-coin"],
        "test_simulated_data_can_be_fitted": ["mace", "one-coin", "plackett-luce", "mpa", "glad", "dawid-skene"],
        "test_the_density_under_transformations": [
            "plackett-luce", "mpa", "yes-no", "dawid-skene", "mace", "one-coin", "normal-inverse-gamma", "prirn",
        ],
        "test_gibbs_and_nuts_agree": ["mace", "one-coin", "plackett-luce", "mpa", "dawid-skene"],
        "test_exact_posterior_and_nuts_agree": ["normal-inverse-gamma", "prirn", "yes-no"],
        "test_models_fits_and_data_are_copied_and_pickled": ["mace", "one-coin"],
        "test_unicode_ids": ["glad", "prirn", "mpa"],
        "test_ids_do_not_matter_to_numbers": ["yes-no"],
        "test_arviz_has_the_users_ids": ["glad"],
        "test_exact_moments_are_those_of_brute_force": ["prirn"],
        "test_what_is_declared_is_consistent": ["mace", "one-coin"],
    },
    "laws/test_padding.py": {
        "test_a_padded_sampler_draws_what_the_exact_one_does": ["one-coin"],
        "test_a_padded_ascent_is_the_exact_one": ["one-coin-cavi"],
    },
    "laws/test_programs.py": {
        "test_a_second_fit_compiles_nothing": ["glad", "one-coin", "mace"],
        "test_a_second_simulation_compiles_nothing_and_draws_the_same_for_its_items": ["mace-label-options1"],
    },
    "laws/test_symmetries.py": {
        "test_every_report_twice_can_be_fitted": [
            "expert-views-Constraints", "glad-Annotations", "one-coin-Annotations", "mace-Annotations",
            "dawid-skene-Annotations",
        ],
        "test_one_report_can_be_fitted": ["expert-views-Constraints", "mace-Annotations", "one-coin-Annotations"],
        "test_codes_and_the_order_of_reports_do_not_matter": [
            "one-coin-Annotations", "mace-Annotations", "plackett-luce-Rankings", "expert-views-Constraints",
            "dawid-skene-Annotations",
        ],
    },
    "models/block_linkage/engines/test_engines.py": {
        "test_engines_fit_as_numpy_does": ["duckdb-across"],
    },
    "models/block_linkage/gibbs/test_links_and_parameters.py": {
        "test_sweeps_leave_the_joint_distribution": ["hit-miss", "labels", "error-classes"],
    },
    "models/block_linkage/test_conjugate.py": {
        "test_true_values_and_distortions": [],
        "test_counts_have_the_means_that_em_expects": [],
    },
    "models/block_linkage/test_entity_interval.py": {
        "test_error_classes_are_sampled_as_such": [],
    },
    "models/block_linkage/test_error_classes.py": {
        "test_errors_of_their_own_are_told_from_errors_by_field": ["0", "2"],
        "test_the_join_loses_nothing": [],
    },
    "models/block_linkage/test_join.py": {
        "test_the_join_is_the_comparison_of_all_pairs": [
            "2200-fields1-6.0-likelihood3", "2200-fields1-2.0-likelihood3",
        ],
    },
    "models/block_linkage/test_labels.py": {
        "test_labels_in_a_part_that_is_drawn": ["1", "2"],
    },
    "models/block_linkage/test_laplace.py": {
        "test_some_components_stand_for_all": ["error-classes-one"],
    },
    "models/block_linkage/test_likelihoods.py": {
        "test_single_precision_holds_many_records_of_a_rare_value": ["dirichlet-multinomial"],
    },
    "models/block_linkage/test_model.py": {
        "test_shares_of_no_consequence_do_not_underflow": [],
    },
    "models/block_linkage/test_sampler.py": {
        "test_errors_of_the_sweep_are_found": ["clusters may fall apart", "the record is never the head"],
        "test_priors_weights_and_sources": ["weights-hit-miss-4", "answers-hit-miss-4"],
    },
    "models/block_linkage/test_sharding.py": {
        "test_devices_find_what_numpy_finds": ["arguments0"],
    },
    "models/crowd/test_ascent.py": {
        "test_the_bound_is_below_the_evidence_and_near_it": [
            "one-coin-learned", "mace-learned", "mace-gold", "mace-uniform", "mace-uniform gold", "one-coin-gold",
        ],
        "test_the_gradient_of_the_objective_of_em_vanishes_at_the_end": ["mace"],
        "test_no_annotation_that_counts_leaves_the_prior": ["mace"],
    },
    "models/crowd/test_crowd_laws.py": {
        "test_known_labels_stay_and_teach": ["mace cavi", "one-coin cavi", "mace em", "one-coin em"],
        "test_permutations_permute": ["one-coin cavi"],
        "test_the_objective_never_falls": ["mace em", "one-coin cavi", "one-coin em", "mace cavi", "dawid-skene em"],
        "test_single_precision_finds_what_double_does": ["mace", "one-coin"],
        "test_one_annotator_agrees_with_nobody": ["one-coin"],
    },
    "models/crowd/test_evidence.py": {
        "test_a_fitted_crowd_annotates_by_its_parameters": [
            "dawid-skene-gibbs", "dawid-skene-em", "mace-cavi", "one-coin-cavi",
        ],
    },
    "models/crowd/test_imputation.py": {
        "test_a_draw_is_the_same_whatever_is_drawn_with_it": ["mace"],
    },
    "models/crowd/test_samplers.py": {
        "test_the_sampler_of_one_coin_has_the_concentrations_that_cavi_learned": [],
        "test_samplers_have_the_exact_moments": [
            "one-coin-nuts-learned", "mace-gibbs-learned", "mace-gibbs-gold", "one-coin-gibbs-learned",
            "one-coin-gibbs-gold", "mace-gibbs-observed",
        ],
        "test_of_noise_the_sampler_is_as_certain_as_the_exact_posterior": ["mace-0"],
        "test_the_density_is_that_of_loops": [
            "one-coin-learned", "one-coin-gold", "mace-uniform", "mace-observed", "dawid-skene-learned",
        ],
        "test_a_weight_is_that_many_annotations": ["mace"],
        "test_gibbs_and_cavi_name_the_same_labels_on_the_1979_data": [],
        "test_simulated_competence_is_found": [],
        "test_one_coin_of_two_items_and_two_annotators_by_hand": [],
    },
    "models/crowd/test_tables.py": {
        "test_means_of_cavi_are_those_of_its_draws": ["mace"],
        "test_imputed_intervals_are_wider_than_those_of_the_factors": ["mace", "one-coin"],
        "test_tables_take_less_memory_than_one_number_for_each_annotation_and_class": [],
    },
    "models/dirichlet_entity/test_truth.py": {
        "test_dense_is_diffuse_at_one": [],
        "test_dense_is_frozen_at_a_concentration_of_a_quarter": [],
    },
    "models/expert_views/test_cavi.py": {
        "test_best_optimum_of_three_clusters": [],
        "test_other_answers_and_priors_do_not_compile_again": [],
    },
    "models/expert_views/test_gibbs.py": {
        "test_the_sampler_agrees_with_brute_force": [
            "orders", "questions", "grades", "grades by order", "symmetric grades", "grades by view", "none",
            "symmetric", "don't know",
        ],
    },
    "models/expert_views/test_gibbs_mutants.py": {
        "test_a_mutant_is_found": [],
        "test_a_short_run_of_other_answers_passes": [],
        "test_a_short_run_passes": [],
    },
    "models/expert_views/test_pinned.py": {
        "test_that_of_spammers_is_that_of_a_long_ladder": [],
    },
    "models/expert_views/test_tables.py": {
        "test_draws_of_all_sites": [],
    },
    "models/hit_miss/test_model.py": {
        "test_sweeps_draw_partitions_as_often_as_they_are_probable": ["partitions across", "entities within 2"],
    },
    "models/mpa/test_cavi.py": {
        "test_the_bound_is_that_of_the_numpyro_model": [
            "with_gold-options1", "annotations_with_gold-options2", "annotations_with_gold-options3",
            "annotations_with_gold-options4",
        ],
        "test_known_labels_are_true_and_the_others_are_not": ["gibbs"],
    },
    "models/mpa/test_gibbs.py": {
        "test_a_mutant_is_found": [],
        "test_the_sampler_passes": ["0"],
    },
    "models/mpa/test_joint.py": {
        "test_it_is_as_sure_as_it_is_right": [],
    },
    "models/mpa/test_labels.py": {
        "test_the_density_of_mentions_is_traced": [],
        "test_a_crowd_as_simulated": [],
        "test_where_the_prior_tells_true_from_false_nothing_is_turned": [],
        "test_the_last_of_equal_candidates_is_the_authors": [],
    },
    "models/mpa/test_partition.py": {
        "test_partitions_are_the_default_where_they_can_be": ["options1-None"],
    },
    "models/mpa/test_scenarios.py": {
        "test_majority_votes_on_litbank": ["synthetic-sparse-0.7779", "synthetic-uniform-0.8631"],
    },
    "models/plackett_luce/test_em.py": {
        "test_the_objective_never_decreases": ["None-1.0-False"],
        "test_an_interior_maximum_of_the_likelihood_has_no_slope": [],
        "test_nothing_known_is_shared_equally": [],
        "test_repeated_reports_and_reliability_are_the_same_thing": [],
        "test_an_interior_optimum_is_that_of_a_general_optimiser": ["1.0"],
        "test_at_the_boundary_no_share_can_be_gained": [],
    },
    "models/plackett_luce/test_gibbs.py": {
        "test_exact_means_at_any_whole_reliability": [],
        "test_exact_means_of_a_tie_of_all_but_one": [],
        "test_any_reliability_without_ties": [],
        "test_data_of_like_size_and_all_reliabilities_share_a_program": [],
        "test_a_large_reliability_with_pairs": [],
        "test_padding_changes_no_draw": [],
        "test_sparse_priors_do_not_tie": [],
        "test_chains_start_apart": [],
        "test_exact_means": ["False"],
    },
    "models/plackett_luce/test_gibbs_mutants.py": {
        "test_a_mutant_is_found": [],
        "test_the_sampler_passes": ["0"],
    },
    "models/test_glad.py": {
        "test_the_bound_never_falls_where_weights_are_fixed": [],
        "test_learned_weights_of_the_ease_raise_the_objective_too": [],
        "test_shards_are_the_whole": [],
        "test_what_else_is_asked_of_a_crowd": [],
        "test_the_1979_table": [],
        "test_entailment_pairs": [],
    },
    "models/test_prirn.py": {
        "test_the_mean_is_irn_without_alpha": ["equation-14"],
    },
    "models/test_truth.py": {
        "test_a_million_classes_with_other_mass_need_little_memory": [],
    },
    "test_docs.py": {
        "test_code_blocks_run": [
            "guides/plausibilities.md", "guides/coreference.md", "guides/crowds.md", "guides/from-crowd-kit.md",
            "guides/judges.md", "guides/data.md", "guides/checking.md", "guides/views.md",
        ],
    },
}
