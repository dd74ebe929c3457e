"""What single commands do outside of a run: doctor, probe, storage, endurance, analysis of a bundle."""
