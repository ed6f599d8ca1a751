"""What is measured: answers, debates, judging, held-out problems, and intervals."""
