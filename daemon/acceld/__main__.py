"""`python -m acceld` is the command `acceld`."""

from acceld.main import main

main()
