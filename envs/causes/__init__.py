"""Rules that find out why a wrong reply is wrong."""
