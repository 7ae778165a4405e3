"""What several tests share: agents, servers, programs, tiny models, and what a test asks of the machine."""
