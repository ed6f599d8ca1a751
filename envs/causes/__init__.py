"""Why a wrong reply is wrong, where rules can tell."""
