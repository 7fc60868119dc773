profile
