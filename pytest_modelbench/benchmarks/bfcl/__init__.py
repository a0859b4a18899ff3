"""The Berkeley Function Calling Leaderboard, single turn. Import from the modules."""
