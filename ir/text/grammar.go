package text

import (
	"sync"

	"github.com/alecthomas/participle/v2"
	"github.com/alecthomas/participle/v2/lexer"
)

// The grammar of one line. Every statement is one line, so a syntax error ends with its line and all of them are reported.
// Names keep their sigil and quotes here; resolve.go takes them off.

type line struct {
	Mesh   *meshDecl   `parser:"  @@"`
	Weight *weightDecl `parser:"| @@"`
	Func   *funcDecl   `parser:"| @@"`
	Return *returnStmt `parser:"| @@"`
	Loc    *locDecl    `parser:"| @@"`
	Close  bool        `parser:"| @'}'"`
	Node   *nodeStmt   `parser:"| @@"`
}

// mesh {dp=2, tp=4}
type meshDecl struct {
	Axes []*axisDecl `parser:"'mesh' '{' ( @@ ( ',' @@ )* )? '}'"`
}

type axisDecl struct {
	Pos  lexer.Position
	Name string `parser:"@( Ident | String ) '='"`
	Size string `parser:"@Number"`
}

// state buffer @kv = "key_cache_0" : f32[1,2,32,16]
type weightDecl struct {
	Pos      lexer.Position
	State    bool      `parser:"@'state'?"`
	Class    string    `parser:"@( 'weight' | 'buffer' | 'constant' )"`
	Sym      string    `parser:"@Sym '='"`
	Source   *source   `parser:"@@"`
	Names    []string  `parser:"( ',' @String )* ':'"`
	Type     *typ      `parser:"@@"`
	Sharding *shardRef `parser:"@@?"`
}

// source is a source expression as it stands, its blanks aside: package weight reads it. Every bracket in it is closed.
type source struct {
	Pos  lexer.Position
	Text string
}

// Parse takes a string, or a word and what stands in brackets behind it.
func (s *source) Parse(lex *lexer.PeekingLexer) error {
	tokens := grammar().Lexer().Symbols()
	first := lex.Peek()
	s.Pos = first.Pos
	if first.Type != tokens["String"] && first.Type != tokens["Ident"] {
		return participle.Errorf(first.Pos, "unexpected token %q (expected a source)", first)
	}
	s.Text = lex.Next().Value
	for depth := 0; first.Type == tokens["Ident"]; {
		switch t := lex.Peek(); {
		case depth == 0 && t.Value != "(":
			return nil
		case t.EOF():
			return participle.Errorf(t.Pos, "unexpected token %q (expected \")\")", t)
		case t.Value == "(":
			depth++
		case t.Value == ")":
			depth--
			if depth == 0 {
				s.Text += lex.Next().Value
				return nil
			}
		}
		s.Text += lex.Next().Value
	}
	return nil
}

// func @main(%x: bf16[8,256] <tp,_>) {
type funcDecl struct {
	Pos    lexer.Position
	Name   string   `parser:"'func' @Sym '('"`
	Params []*param `parser:"( @@ ( ',' @@ )* )? ')' '{'"`
}

type param struct {
	Pos      lexer.Position
	Name     string    `parser:"@Value ':'"`
	Type     *typ      `parser:"@@"`
	Sharding *shardRef `parser:"@@?"`
}

// %1, %2 = topk %0 {k=2} : f32[8,2], i64[8,2] #1
type nodeStmt struct {
	Pos   lexer.Position
	Outs  []*ref    `parser:"@@ ( ',' @@ )* '='"`
	Op    *word     `parser:"@@"`
	Args  []*ref    `parser:"( @@ ( ',' @@ )* )?"`
	Attrs []*attr   `parser:"( '{' ( @@ ( ',' @@ )* )? '}' )? ':'"`
	Types []*result `parser:"@@ ( ',' @@ )*"`
	Loc   *locRef   `parser:"@@?"`
}

type word struct {
	Pos  lexer.Position
	Text string `parser:"@Ident"`
}

type ref struct {
	Pos  lexer.Position
	Name string `parser:"@( Value | Sym )"`
}

type result struct {
	Pos      lexer.Position
	Type     *typ      `parser:"@@"`
	Sharding *shardRef `parser:"@@?"`
}

type locRef struct {
	Pos lexer.Position
	ID  string `parser:"@Loc"`
}

type attr struct {
	Pos   lexer.Position
	Name  string `parser:"@Ident '='"`
	Value *value `parser:"@@"`
}

// value is an attribute's value before its field says what it must be.
type value struct {
	Pos    lexer.Position
	Type   *typ     `parser:"  ( @@"`
	Lit    *elems   `parser:"    @@? )"` // with a type: the elements of a literal
	IsList bool     `parser:"| ( @'['"`
	List   []*value `parser:"    ( @@ ( ',' @@ )* )? ']' )"`
	Str    *string  `parser:"| @String"`
	Num    *string  `parser:"| @Number"`
	Sym    *string  `parser:"| @Sym"` // a function
	Word   *string  `parser:"| @Ident"`
}

// elems is what follows the type in a literal. It recurs only inside brackets, whose depth is limited.
type elems struct {
	Pos    lexer.Position
	IsList bool     `parser:"  ( @'['"`
	List   []*elems `parser:"    ( @@ ( ',' @@ )* )? ']' )"`
	Str    *string  `parser:"| @String"`
	Word   *string  `parser:"| @( Number | Ident )"`
}

// typ is such as f32[2,3].
type typ struct {
	Pos   lexer.Position
	DType string   `parser:"@Ident '['"`
	Dims  []string `parser:"( @Number ( ',' @Number )* )? ']'"`
}

// shardRef is such as <dp+tp,_>.
type shardRef struct {
	Pos  lexer.Position
	Dims []*shardDim `parser:"'<' ( @@ ( ',' @@ )* )? '>'"`
}

type shardDim struct {
	Axes []string `parser:"@( Ident | String ) ( '+' @( Ident | String ) )*"`
}

// return %1, @kv = %5
type returnStmt struct {
	Pos   lexer.Position
	Items []*returnItem `parser:"'return' ( @@ ( ',' @@ )* )?"`
}

type returnItem struct {
	Value *ref `parser:"@@"`
	New   *ref `parser:"( '=' @@ )?"`
}

// #1 = "model.layers.0" at "modeling_llama.py":71 "y = self.down_proj(h)"
type locDecl struct {
	Pos    lexer.Position
	ID     string `parser:"@Loc '='"`
	Layer  string `parser:"@String?"`
	File   string `parser:"( 'at' @String"`
	Line   string `parser:"  ( ':' @Number"`
	Col    string `parser:"    ( ':' @Number )? )?"`
	Source string `parser:"  @String? )?"`
}

// grammar is built at first use: building walks all types above by reflection.
var grammar = sync.OnceValue(func() *participle.Parser[line] {
	return participle.MustBuild[line](participle.UseLookahead(2), participle.Elide("space", "comment"), participle.Lexer(lexer.MustSimple([]lexer.SimpleRule{
		{Name: "space", Pattern: `[ \t\r]+`},
		{Name: "comment", Pattern: `//.*`},
		{Name: "String", Pattern: `"(?:[^"\\]|\\.)*"`},
		{Name: "Value", Pattern: `%(?:[A-Za-z_0-9]+|"(?:[^"\\]|\\.)*")`},
		{Name: "Sym", Pattern: `@(?:[A-Za-z_0-9]+|"(?:[^"\\]|\\.)*")`},
		{Name: "Loc", Pattern: `#[0-9]+`},
		{Name: "Number", Pattern: `[-+]?[0-9]+(?:\.[0-9]*)?(?:[eE][-+]?[0-9]+)?|-inf\b`},
		{Name: "Ident", Pattern: `[A-Za-z_][A-Za-z_0-9]*`},
		{Name: "Punct", Pattern: `[][(){}<>,=:+]`},
	})))
})
