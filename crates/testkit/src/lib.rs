//! Fakes and conformance suites for the ports, servers on free ports.
