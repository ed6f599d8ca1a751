"""Hold, grade, reward and record the debates of a run's steps."""
