"""What tests of several drivers share: programs that were compiled, and Ctrl-C at a step."""

import jax

COMPILED = []
"""An entry for every program that JAX has compiled since this was imported."""

jax.monitoring.register_event_duration_secs_listener(
    lambda event, seconds, **_: COMPILED.append(event) if event.endswith("backend_compile_duration") else None
)


def stop_at(limit):
    """Return a progress function that is interrupted at the first look after so many steps."""

    def progress(steps, num_steps):
        if steps >= limit:
            raise KeyboardInterrupt

    return progress
