"""What sound and sight add to each other, from answers to the same questions.

pyflyte run workflows/lab/recipes/av_speaker.py av_speaker \\
    --both both.jsonl --video video.jsonl --audio audio.jsonl
"""

from tasks.lab.recipes.av_speaker.task import fusion_gain
from tasks.platform.entry_point import entry_point


@entry_point
def av_speaker(both: str, video: str = "", audio: str = "", out: str = "fusion.json") -> str:
    """Compare the answers of a model with sound and video with those without one of them.

    Each file has JSON lines with id, answer (the right letter, A to D) and response (text or null).
    The letter is read from the last line of a response; without one there is no answer.

    Args:
        both: answers with sound and video; a path or s3:// address.
        video: answers with video alone; '' for none.
        audio: answers with sound alone; '' for none.
        out: JSON to write.

    Returns:
        Where the JSON is.
    """
    return fusion_gain(both=both, video=video, audio=audio, out=out)
