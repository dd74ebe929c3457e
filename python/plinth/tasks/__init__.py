"""What single commands do by themselves, outside of a run: doctor, probe, storage, endurance, analysis of a bundle."""
