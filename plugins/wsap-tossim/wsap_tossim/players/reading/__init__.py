"""What a player makes of what it has read: claims, counts, beliefs and stories."""
