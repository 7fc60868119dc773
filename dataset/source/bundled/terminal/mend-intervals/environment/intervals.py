"""Intervals on a line."""


def merge(intervals):
    """Merge intervals that overlap or touch."""
    intervals.sort()
    merged = []
    for begin, end in intervals:
        if merged and begin < merged[-1][1]:
            merged[-1] = (merged[-1][0], end)
        else:
            merged.append((begin, end))
    return merged
