"""`python -m consilience` is the same as `consilience`."""

from consilience.cli import main

raise SystemExit(main())
