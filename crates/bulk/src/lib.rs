//! Row generators and parallel COPY streams.
