class ComparisonPage {}
