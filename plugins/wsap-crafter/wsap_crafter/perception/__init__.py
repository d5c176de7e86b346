"""What an agent perceives of Crafter: observations, pictures, and sentences about both."""
