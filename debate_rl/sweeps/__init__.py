"""Many runs as one experiment: arms that differ in some keys, over several seeds, and a table of them."""
