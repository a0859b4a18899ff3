"""AutomationBench: office work in a world of JSON, judged by its end. Import from the modules."""
