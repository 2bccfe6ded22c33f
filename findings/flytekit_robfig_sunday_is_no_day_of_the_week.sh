#!/usr/bin/env bash
# Expected: a schedule that flytekit has checked, as it does when a launch plan is written, is one that
# Flyte keeps. Seen: flytekit asks croniter, the scheduler of Flyte reads with robfig/cron, and the two
# know different crontabs. Sunday as 7, Saturday and Sunday as 6-7, Friday to Monday as 5-1, the first
# Monday as 1#1 and the last day as L all pass in Python, croniter names their next days, and the parser
# of the scheduler refuses every one; Sunday as 0 is read by both. Versions: flytekit 1.16.31, croniter
# 7.0.0, robfig/cron 3.0.1 for Go. Matters: what passed on a laptop and in its tests is refused when it is
# registered, or, by a platform that does not look at it then, is active and never runs; write 0 for
# Sunday, ranges that go up, and lists.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/python -m pip install --quiet --disable-pip-version-check flytekit==1.16.31 croniter==7.0.0
cat > show.py <<'PYTHON'
import datetime

from croniter import croniter
from flytekit import CronSchedule

START = datetime.datetime(2026, 6, 3)
with open("accepted", "w") as accepted:
    for schedule, days in (
        ("0 9 * * 0", "Sun 07 Jun, Sun 14 Jun"),
        ("0 9 * * 7", "Sun 07 Jun, Sun 14 Jun"),
        ("0 9 * * 6-7", "Sat 06 Jun, Sun 07 Jun"),
        ("0 9 * * 5-1", "Fri 05 Jun, Sat 06 Jun"),
        ("0 9 * * 1#1", "Mon 06 Jul, Mon 03 Aug"),
        ("0 9 L * *", "Tue 30 Jun, Fri 31 Jul"),
    ):
        CronSchedule(schedule=schedule)  # refuses what croniter cannot read
        dates = croniter(schedule, START)
        seen = ", ".join(f"{dates.get_next(datetime.datetime):%a %d %b}" for _ in range(2))
        print(f"flytekit: {schedule} is valid: {seen}")
        assert seen == days
        print(schedule, file=accepted)
PYTHON
cat > main.go <<'GO'
package main

import (
	"bufio"
	"fmt"
	"os"

	"github.com/robfig/cron/v3"
)

func main() {
	accepted, _ := os.Open("accepted")
	for lines := bufio.NewScanner(accepted); lines.Scan(); {
		_, err := cron.ParseStandard(lines.Text())
		fmt.Printf("scheduler: %s: %v\n", lines.Text(), err)
		if (err == nil) != (lines.Text() == "0 9 * * 0") {
			os.Exit(1)
		}
	}
}
GO
export HOME=$folder GOPATH=$folder/go GOFLAGS=-modcacherw
go mod init show 2> log && go get github.com/robfig/cron/v3@v3.0.1 2>> log && go build -o show . 2>> log || { cat log; exit 1; }
venv/bin/python -W ignore show.py
./show
