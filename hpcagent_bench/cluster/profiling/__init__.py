"""Looking at a delivery without grading it (/profile): where time goes, what its compiler did."""
