# needs:
trail=base
