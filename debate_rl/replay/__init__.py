"""The debates of a run rewarded again under another reward scheme; needs no GPU and loads no torch."""
