// Package tpuc puts the compiler together: it opens a model, runs the passes, lowers, compiles through a plugin, writes the artifact,
// and opens artifacts and models to run them. It is the Go API of everything that the command does. It computes nothing itself.
package tpuc

// Version is the version of this compiler. It is recorded in artifacts.
const Version = "0.1.0-dev"
