#!/bin/sh
# Every source file is in the makefile's lists (else it would be missing from the build or from `make dist`).
exec "${top_srcdir:-.}/script/sources" --check
