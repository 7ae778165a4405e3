"""`python -m proctor` is `proctor`."""

from proctor.cli.main import main

raise SystemExit(main())
