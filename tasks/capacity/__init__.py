"""Does a layout fit its GPUs?"""
