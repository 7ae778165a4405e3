"""The batched decoder of local models."""
