//go:build !linux

// Package fileid tells one state of a file from another without reading it.
package fileid

// Of names the state of the file at path: empty, as this system does not tell.
func Of(string) string { return "" }
