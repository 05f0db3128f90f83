//go:build !linux

package tpuc

func identityOf(string) identity { return "" }
