"""What tests of several drivers share: Ctrl-C at a step."""


def stop_at(limit):
    """Return a progress function that is interrupted at the first look after so many steps."""

    def progress(steps, num_steps):
        if steps >= limit:
            raise KeyboardInterrupt

    return progress
