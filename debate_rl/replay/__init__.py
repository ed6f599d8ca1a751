"""The debates of a run rewarded or graded again, by other rules; needs no GPU and loads no torch."""
