"""`python -m ldf` is the command `ldf`."""

from ldf.cli import main

main()
