// Package pt2 reads torch.export archives (.pt2) of torch 2.5 and later into the IR, raw and decomposed ones.
//
// It owns everything about the graph, which is JSON: the JSON schema, symbolic dimensions and their binding, the call
// signature, functionalisation of views and in-place operators, torch's type promotion, and the table of ATen operators. The
// container and the bytes of tensors are frontend/weights'. It never runs Python, never reads a pickle, and never looks at the
// contents of parameters.
package pt2

import (
	"context"
	"encoding/json"
	"fmt"

	"tpuc/frontend/weights"
	"tpuc/internal/jsonerr"
	"tpuc/ir/diag"
)

// Program is an opened archive whose dimensions may still be symbolic. Close it after the last use of its weights.
type Program struct {
	TorchVersion string   // that wrote the archive, such as "2.15.0+cu132"; may be empty
	Schema       [2]int   // major and minor version of the archive's schema
	Decomposed   bool     // after run_decompositions(): functional core ATen with explicit mutations
	Nodes        int      // in the graph
	Symbols      []Symbol // of the inputs' shapes, sorted by name
	Inputs       []Leaf   // flattened user inputs, with symbolic dims
	Outputs      []Leaf   // flattened user outputs, with symbolic dims

	archive *weights.Archive
	ep      exportedProgram
	exprs   map[string]*expr

	custom     *CustomOps // of the user; nil: none
	customUsed map[*customOp]bool
}

// Open maps the archive at path and reads its graph. AOTInductor packages and graphs of another major schema version are refused with
// what to do.
func Open(ctx context.Context, path string) (*Program, error) {
	archive, err := weights.OpenArchive(path)
	if err != nil {
		return nil, err
	}
	p, err := read(ctx, archive)
	if err != nil {
		archive.Close()
		return nil, err
	}
	return p, nil
}

// Weights is the archive's checkpoint: the tensors that the module's weights name.
func (p *Program) Weights() *weights.Archive { return p.archive }

// Close unmaps the archive. Modules that were imported from it lose their constants' data.
func (p *Program) Close() error { return p.archive.Close() }

// schemaOld and schemaMajor are the major versions of the graph's schema that are read: that of torch 2.5 and that of all later ones. They
// differ in how symbolic expressions are written, and parseExpr reads both.
const schemaOld, schemaMajor = 7, 8

func knownSchema(v schemaVersion) bool { return v.Major == schemaOld || v.Major == schemaMajor }

func read(ctx context.Context, archive *weights.Archive) (*Program, error) {
	data, err := archive.Entry(archive.Graph())
	if err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	p := &Program{archive: archive, exprs: make(map[string]*expr)}
	if err := p.decode(data); err != nil {
		return nil, fmt.Errorf("%s: %w", archive.Label(), err)
	}
	return p, nil
}

// decode reads the graph's JSON.
func (p *Program) decode(data []byte) error {
	// The version first: another major version may not have the same shape.
	var head struct {
		SchemaVersion *schemaVersion `json:"schema_version"`
	}
	if err := json.Unmarshal(data, &p.ep); err != nil {
		if json.Unmarshal(data, &head) != nil || head.SchemaVersion == nil || knownSchema(*head.SchemaVersion) {
			return fmt.Errorf("%s is not a graph of torch.export: %w", p.archive.Graph(), jsonerr.Describe(err))
		}
		p.ep.SchemaVersion = *head.SchemaVersion
	}
	if v := p.ep.SchemaVersion; !knownSchema(v) {
		return diag.Errorf(nil, "pt2/schema", "the graph's schema version is %d.%d, wanted %d.x or %d.x", v.Major, v.Minor, schemaOld, schemaMajor).
			Note("export the model again with torch 2.9 or later")
	}
	p.TorchVersion = p.ep.TorchVersion
	p.Schema = [2]int{p.ep.SchemaVersion.Major, p.ep.SchemaVersion.Minor}
	for _, v := range p.ep.Verifiers {
		p.Decomposed = p.Decomposed || v == "ATEN"
	}
	p.Nodes = len(p.ep.GraphModule.Graph.Nodes)
	if err := p.readSignature(); err != nil {
		return err
	}
	return p.readSymbols()
}

// parse is parseExpr with a memory: archives repeat the same few expressions thousands of times.
func (p *Program) parse(s string) (*expr, error) {
	if e, ok := p.exprs[s]; ok {
		return e, nil
	}
	e, err := parseExpr(s)
	if err != nil {
		return nil, err
	}
	p.exprs[s] = e
	return e, nil
}
