#!/usr/bin/env bash
# Expected: a comparison without a p-value (an arm that did not run is NaN) is left out by
# multipletests, or refused, and the others are corrected among themselves. Seen: method "fdr_bh"
# returns NaN as every corrected p-value, and still says True beside three of them; "hommel" says
# that nothing is significant; "holm" counts the arm that is missing, and of three that are
# significant without it two no longer are. No warning. Version: statsmodels 0.15.0. Matters: tables of
# studies, in which one failed cell changes the verdict on all others.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/python -m pip install --quiet --disable-pip-version-check statsmodels==0.15.0 numpy==2.3.5 scipy==1.17.1
cat > show.py <<'PYTHON'
import warnings

import numpy as np
from statsmodels.stats.multitest import multipletests

warnings.simplefilter("error")  # it says nothing
whole, holed = [0.001, 0.02, 0.03], [0.001, np.nan, 0.02, 0.03]
for method in ("holm", "hommel", "fdr_bh"):
    alone = multipletests(whole, method=method)
    beside = multipletests(holed, method=method)
    print(f"{method}: without the missing one {alone[0].tolist()} {alone[1].round(4).tolist()}")
    print(f"{method}: beside it               {beside[0].tolist()} {beside[1].round(4).tolist()}")
    if method == "holm":
        assert alone[0].tolist() == [True, True, True]
        assert beside[0].tolist() == [True, False, False, False]
    if method == "hommel":
        assert alone[0].all() and not beside[0].any()
    if method == "fdr_bh":
        assert np.isnan(beside[1]).all() and beside[0].tolist() == [True, False, True, True]
PYTHON
HOME=$folder venv/bin/python show.py
