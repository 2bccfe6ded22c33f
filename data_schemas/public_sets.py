"""The public data sets of this project, each with its role: trained on, or only evaluated with.

One list for all who name them: workflows/runs.mk reads the lines of `SETS`, presets are checked
with `BENCHMARKS`. An entry is an option of `--sources`, adapter=path below a folder of public
data, with `evaluation:` in front of benchmarks: test and dev files, and sets that are published
to evaluate with. A set may have a file of either role.
"""

SETS = (
    "evaluation:mgsm=mgsm",
    "evaluation:gsm8k=gsm8k/test.jsonl",
    "evaluation:amc23=amc23",
    "evaluation:olympiadbench=olympiadbench",
    "evaluation:cmath=cmath_zh",
    "evaluation:humaneval=humaneval",
    "evaluation:cruxeval=cruxeval",
    "evaluation:bbh=bbh",
    "evaluation:xcopa=xcopa",
    "evaluation:knights_knaves=knights_knaves/3ppl_test.parquet",
    "evaluation:knights_knaves=knights_knaves/4ppl_test.parquet",
    "evaluation:knights_knaves=knights_knaves/5ppl_test.parquet",
    "evaluation:ifeval=ifeval",
    "evaluation:m_ifeval=m_ifeval",
    "evaluation:bfcl=bfcl_v4",
    "evaluation:api_bank=api_bank",
    "evaluation:tau_bench_retail=tau_bench_retail/tasks_dev.jsonl",
    "evaluation:ae110k=attribute_extraction/ae-110k_test.jsonl",
    "evaluation:amazon_google=product_matching/amazon_google_test.parquet",
    "evaluation:amazon_google=product_matching/amazon_google_valid.parquet",
    "evaluation:shoppingbench_knowledge=shoppingbench/web_simpleqa.jsonl",
    "evaluation:sentiment_id=nusax/sentiment_indonesian_test.jsonl",
    "evaluation:wisesight=wisesight_th",
    "gsm8k=gsm8k/train.jsonl",
    "gsm8k_model_solutions=gsm8k_model_solutions",
    "math_train=math_train",
    "qwen_math_graded=qwen_math_graded",
    "mbpp=mbpp",
    "marco_o1=marco_o1_cot",
    "s1k=s1k_sample",
    "knights_knaves=knights_knaves/3ppl_train.parquet",
    "knights_knaves=knights_knaves/5ppl_train.parquet",
    "toolrl_rlla=toolrl_rlla",
    "tau_bench_retail=tau_bench_retail/tasks_train.jsonl",
    "tau_bench_address=tau_bench_retail/db_users.jsonl",
    "ae110k=attribute_extraction/ae-110k_train.jsonl",
    "oa_mine=attribute_extraction",
    "amazon_google=product_matching/amazon_google_train.parquet",
    "product_matching=product_matching/walmart_amazon_train.parquet",
    "prdect_id=prdect_id",
    "prdect_id_emotion=prdect_id",
    "casa=indonlu/casa_train.jsonl",
    "hoasa=indonlu/hoasa_train.jsonl",
    "sentiment_id=indonlu/smsa_valid.jsonl",
    "nusax_translation=nusax/mt_train.jsonl",
)
_NOT_AT_HAND = (
    "aime24",
    "aime25",
    "av_speakerbench_blind",
    "bfcl_multi_turn",
    "chinese_ecom_intent",
    "chinese_ecom_phrases",
    "chinese_ecom_preference",
    "chinese_ecom_relevance",
    "chinese_ecom_review",
    "global_mmlu_lite",
    "gpqa",
    "hmmt",
    "livecodebench",
    "math500",
    "mmlu_redux",
    "sample_chains_both",
    "sample_chains_level",
    "sample_chains_template",
    "sea_belebele",
    "sea_causal",
    "sea_nli",
    "sea_safeguard_prompts",
    "sea_safeguard_responses",
    "sea_safeguard_wild",
    "sea_sentiment",
    "shopping_mmlu",
    "xstest_safe",
    "xstest_unsafe",
    "zebra_logic",
)
"""Benchmarks that are described, read or generated here and are not in the list."""


def _adapters(*, evaluation: bool) -> frozenset[str]:
    prefix = "evaluation:"
    return frozenset(
        entry.removeprefix(prefix).partition("=")[0]
        for entry in SETS
        if entry.startswith(prefix) is evaluation
    )


BENCHMARKS = (_adapters(evaluation=True) - _adapters(evaluation=False)) | {*_NOT_AT_HAND}
"""Sets of which no file is trained on."""
