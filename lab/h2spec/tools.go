//go:build tools

// Package h2spec holds the version of h2spec, and of all it is built from, in go.mod and go.sum.
package h2spec

import _ "github.com/summerwind/h2spec/cmd/h2spec"
