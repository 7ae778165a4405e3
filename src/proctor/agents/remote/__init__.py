"""An agent on another machine: frames and observations go out, actions come back."""
