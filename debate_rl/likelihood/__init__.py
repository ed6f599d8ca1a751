"""What a frozen reader makes of reasoning alone: the likelihood reward."""
