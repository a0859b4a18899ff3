"""SpreadsheetBench: workbooks to be changed, judged by their values. Import from the modules."""
