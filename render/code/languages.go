package code

import (
	"strings"
	"sync"
)

// language is what the scanner knows about one. All fields are lists of words, so that the
// table below is data and costs a program nothing until a language is used.
type language struct {
	names    string // its name, what people call it, and the extensions of its files
	comments string // what begins a comment that ends with its line
	blocks   string // pairs: how other comments begin and end
	quotes   string // the characters around strings of one line
	long     string // pairs: how strings of several lines begin and end
	keywords string
	types    string // types and constants
	traits   traits
}

type traits uint8

const (
	folded     traits = 1 << iota // KEYWORDS may be written in capitals
	keys                          // key: value or key = value, and [sections]
	markup                        // <tags>
	lines                         // a line is one thing: a diff
	decorators                    // @name
	variables                     // $name
	runes                         // 'a' is a character, and 'a alone something else
	raw                           // a backslash is one in strings of several lines
)

const (
	cBlocks  = "/* */"
	jsWords  = "async await break case catch class const continue debugger default delete do else export extends finally for from function get if import in instanceof let new of return set static super switch this throw try typeof var void while with yield"
	tsWords  = jsWords + " abstract as declare enum implements interface is keyof module namespace override private protected public readonly satisfies type"
	jsValues = "true false null undefined NaN Infinity"
	cWords   = "asm auto break case const constexpr continue default do else enum extern for goto if inline register restrict return sizeof static struct switch typedef union volatile while"
	cTypes   = "bool char double float int long short signed size_t ssize_t unsigned void int8_t int16_t int32_t int64_t uint8_t uint16_t uint32_t uint64_t true false NULL nullptr"
)

var languages = [...]language{
	{
		names: "go golang", comments: "//", blocks: cBlocks, quotes: `"'`, long: "` `", traits: raw,
		keywords: "break case chan const continue default defer else fallthrough for func go goto if import interface map package range return select struct switch type var",
		types:    "any bool byte comparable complex64 complex128 error float32 float64 int int8 int16 int32 int64 rune string uint uint8 uint16 uint32 uint64 uintptr true false nil iota",
	},
	{
		names: "python py py3 python3 pyi pycon", comments: "#", quotes: `"'`, long: `""" """ ''' '''`, traits: decorators,
		keywords: "and as assert async await break case class continue def del elif else except finally for from global if import in is lambda match nonlocal not or pass raise return try while with yield",
		types:    "None True False bool bytes dict float int list object self set str tuple type",
	},
	{names: "javascript js jsx mjs cjs node", comments: "//", blocks: cBlocks, quotes: `"'`, long: "` `", keywords: jsWords, types: jsValues, traits: decorators},
	{names: "typescript ts tsx mts cts", comments: "//", blocks: cBlocks, quotes: `"'`, long: "` `", keywords: tsWords, types: jsValues + " any bigint boolean never number object string symbol unknown void", traits: decorators},
	{
		names: "bash sh shell zsh ksh shell-session console sh-session fish env", comments: "#", quotes: `"'`, long: "` `", traits: variables,
		keywords: "alias break case cd continue do done echo elif else end esac eval exec exit export fi for function if in local read readonly return select set shift source then time trap unset until while",
		types:    "true false",
	},
	{names: "json jsonc json5 jsonl ndjson", comments: "//", blocks: cBlocks, quotes: `"`, types: "true false null", traits: keys},
	{names: "yaml yml", comments: "#", quotes: `"'`, types: "true false null yes no on off", traits: keys},
	{names: "toml ini cfg conf properties editorconfig dotenv desktop", comments: "# ;", quotes: `"'`, long: `""" """ ''' '''`, types: "true false", traits: keys},
	{names: "html htm xhtml vue svelte xml svg xsd xslt plist jsp erb", blocks: "<!-- -->", quotes: `"`, traits: markup},
	{names: "css scss sass less", comments: "//", blocks: cBlocks, quotes: `"'`, keywords: "important from to and not only", types: "inherit initial unset none auto", traits: keys | decorators | variables},
	{
		names: "sql mysql postgresql postgres plpgsql sqlite psql", comments: "--", blocks: cBlocks, quotes: `'"`, traits: folded,
		keywords: "add all alter analyze and as asc begin between by cascade case check column commit conflict constraint create cross database default delete desc distinct do drop else end exists explain foreign from full function grant group having if ilike in index inner insert intersect into is join key left like limit not nothing nulls offset on or order outer over partition primary procedure references returning right rollback row select set table then to transaction trigger union unique update using values view when where with",
		types:    "bigint bigserial blob boolean bytea char date decimal double float int integer json jsonb null numeric real serial smallint text time timestamp timestamptz true false uuid varchar",
	},
	{names: "diff patch udiff", traits: lines},
	{
		names: "rust rs", comments: "//", blocks: cBlocks, quotes: `"'`, traits: runes,
		keywords: "as async await break const continue crate dyn else enum extern fn for if impl in let loop match mod move mut pub ref return self Self static struct super trait type unsafe use where while",
		types:    "bool char f32 f64 i8 i16 i32 i64 i128 isize str String u8 u16 u32 u64 u128 usize Box None Ok Err Option Result Some Vec true false",
	},
	{names: "c h", comments: "//", blocks: cBlocks, quotes: `"'`, keywords: cWords, types: cTypes},
	{
		names: "cpp c++ cc cxx hpp hh hxx objective-c objectivec objc m mm cuda cu", comments: "//", blocks: cBlocks, quotes: `"'`, traits: decorators,
		keywords: cWords + " alignas and catch class co_await co_return co_yield concept const_cast decltype delete dynamic_cast explicit export final friend mutable namespace new noexcept not operator or override private protected public reinterpret_cast requires static_cast template this throw try typename using virtual",
		types:    cTypes + " string vector map set wchar_t",
	},
	{
		names: "java", comments: "//", blocks: cBlocks, quotes: `"'`, long: `""" """`, traits: decorators,
		keywords: "abstract assert break case catch class continue default do else enum extends final finally for if implements import instanceof interface native new package permits private protected public record return sealed static super switch synchronized this throw throws transient try var volatile while yield",
		types:    "boolean byte char double float int long short void String Object Integer List Map true false null",
	},
	{
		names: "kotlin kt kts", comments: "//", blocks: cBlocks, quotes: `"'`, long: `""" """`, traits: decorators,
		keywords: "abstract as break by catch class companion const continue data do else enum final finally for fun if import in init inline interface internal is lateinit object open operator override package private protected public return sealed super suspend this throw try typealias val var when where while",
		types:    "Any Boolean Byte Char Double Float Int List Long Map Nothing Set Short String Unit true false null",
	},
	{
		names: "csharp cs c#", comments: "//", blocks: cBlocks, quotes: `"'`, long: `""" """`,
		keywords: "abstract as async await base break case catch checked class const continue default delegate do else enum event explicit extern finally fixed for foreach get goto if implicit in init interface internal is lock namespace new operator out override params private protected public readonly record ref return sealed set sizeof stackalloc static struct switch this throw try typeof unchecked unsafe using var virtual when where while with yield",
		types:    "bool byte char decimal double dynamic float int long object sbyte short string uint ulong ushort void true false null",
	},
	{
		names: "swift", comments: "//", blocks: cBlocks, quotes: `"`, long: `""" """`, traits: decorators,
		keywords: "as async await break case catch class continue default defer deinit do else enum extension fallthrough fileprivate for func guard if import in init inout internal is let mutating open operator override private protocol public repeat rethrows return self Self static struct subscript super switch throw throws try typealias var weak where while",
		types:    "Any Array Bool Character Dictionary Double Float Int Optional Set String UInt Void true false nil",
	},
	{
		names: "php", comments: "// #", blocks: cBlocks, quotes: `"'`, traits: variables,
		keywords: "abstract and array as break callable case catch class clone const continue declare default do echo else elseif empty enum extends final finally fn for foreach function global if implements include include_once instanceof interface isset list match namespace new or print private protected public readonly require require_once return static switch throw trait try unset use var while yield",
		types:    "bool float int mixed null object string true false void self parent",
	},
	{
		names: "ruby rb rake gemfile", comments: "#", blocks: "=begin =end", quotes: `"'`, long: "` `", traits: decorators,
		keywords: "alias and begin break case class def defined do else elsif end ensure for if in include module next not or private protected public raise redo require require_relative rescue retry return self super then undef unless until when while yield attr_accessor attr_reader",
		types:    "true false nil",
	},
	{names: "lua", comments: "--", blocks: "--[[ ]]", quotes: `"'`, long: "[[ ]]", traits: raw, keywords: "and break do else elseif end for function goto if in local not or repeat return then until while", types: "true false nil"},
	{names: "perl pl pm", comments: "#", quotes: `"'`, keywords: "and die do each else elsif eval for foreach if keys last local my next no not or our package print push redo require return shift sub unless until use while", traits: variables | decorators},
	{
		names: "scala sbt groovy gradle dart", comments: "//", blocks: cBlocks, quotes: `"'`, long: `""" """ ''' '''`, traits: decorators,
		keywords: "abstract as async await break case catch class const continue def default do else enum extends extension factory final finally for given if implements implicit import in late lazy match mixin new object override package private protected return sealed static super switch this throw trait try type val var void when while with yield",
		types:    "Any Boolean Double Float Future Int List Long Map Set String Unit bool double dynamic int num true false null",
	},
	{
		names: "haskell hs elm purescript ocaml ml mli fsharp fs", comments: "-- //", blocks: "{- -} (* *)", quotes: `"`,
		keywords: "and as begin case class data deriving do done else end exception fun function if import in infix instance let match module mutable mutual newtype of open rec struct sig then to try type val when where while with",
		types:    "Bool Char Double Int Integer IO Just Left Maybe Nothing Right String True False bool float int string unit true false",
	},
	{names: "elixir ex exs erlang erl hrl", comments: "# %", quotes: `"'`, long: `""" """`, traits: decorators, keywords: "after alias and case catch cond def defmacro defmodule defp defstruct do else end fn for if import in not of or quote raise receive require rescue try unless unquote use when with", types: "true false nil"},
	{names: "clojure clj cljs edn lisp scheme el elisp racket", comments: ";", quotes: `"`, keywords: "and case cond def defmacro defn defun do fn if lambda let loop ns or progn quote recur require set setq when", types: "true false nil"},
	{names: "r", comments: "#", quotes: `"'`, long: "` `", keywords: "break else for function if in library next repeat return while", types: "TRUE FALSE NULL NA Inf NaN"},
	{
		names: "julia jl nim zig", comments: "# //", quotes: `"`, long: `""" """`, traits: decorators,
		keywords: "abstract and begin break case catch comptime const continue defer discard do else elseif end enum errdefer export fn for function if import in let macro module mutable or orelse proc pub quote return struct switch template test try type union unreachable using var when where while",
		types:    "Any Bool Float64 Int Int64 Nothing String bool f32 f64 i32 i64 int string u8 u32 u64 usize void anytype true false nothing null undefined nil",
	},
	{names: "powershell ps1 psm1 pwsh", comments: "#", blocks: "<# #>", quotes: `"'`, keywords: "begin break catch class continue do else elseif end exit finally for foreach function if in param process return switch throw trap try until using while", traits: variables | folded},
	{names: "bat cmd batch", comments: "rem :: REM", quotes: `"`, keywords: "call cd copy del do echo else endlocal exit for goto if in md move not pause rd set setlocal shift start", traits: folded},
	{names: "dockerfile docker containerfile", comments: "#", quotes: `"'`, keywords: "add arg as cmd copy entrypoint env expose from healthcheck label onbuild run shell stopsignal user volume workdir", traits: folded | variables},
	{names: "makefile make mk gnumake cmake just justfile", comments: "#", quotes: `"'`, keywords: "define else endef endif export ifdef ifeq ifndef ifneq include override unexport vpath add_executable add_library endforeach endfunction endmacro foreach function if macro set target_link_libraries", traits: keys | variables},
	{names: "hcl terraform tf tfvars nix", comments: "# //", blocks: cBlocks, quotes: `"`, long: "'' ''", keywords: "assert data else for if import in inherit let locals module output provider rec resource then terraform variable with", types: "true false null any bool list map number string", traits: keys},
	{names: "protobuf proto thrift", comments: "//", blocks: cBlocks, quotes: `"'`, keywords: "enum extend extensions import map message oneof option optional package repeated required reserved returns rpc service stream syntax", types: "bool bytes double fixed32 fixed64 float int32 int64 sint32 sint64 string uint32 uint64 true false"},
	{names: "graphql gql", comments: "#", quotes: `"`, long: `""" """`, keywords: "directive enum extend fragment implements input interface mutation on query scalar schema subscription type union", types: "Boolean Float ID Int String true false null", traits: decorators | variables},
	{names: "nginx apache caddyfile", comments: "#", quotes: `"'`, keywords: "events http if include listen location log_format proxy_pass return rewrite root server server_name try_files upstream", types: "on off", traits: variables},
	{names: "tex latex bib bibtex", comments: "%", keywords: "begin end documentclass usepackage section subsection chapter item label ref cite textbf textit emph"},
	{names: "vim viml vimscript", comments: "#", quotes: `'`, keywords: "augroup autocmd call command echo else elseif endfor endfunction endif endwhile execute for function if in let map nnoremap return set silent while"},
	{names: "asm nasm s wasm wat llvm", comments: "; # //", blocks: cBlocks, quotes: `"'`, keywords: "add and call cmp dec div global inc int jmp je jne jz jnz lea mov mul not or pop push ret section sub syscall test xor", traits: folded},
}

// grammars are made when they are first asked for.
var grammars [len(languages)]struct {
	once sync.Once
	grammar
}

// maxName is the length of the longest name of a language.
const maxName = 20

// find returns the grammar for a name or the extension of a file, or nil.
func find(name string) *grammar {
	if name == "" || len(name) > maxName || strings.ContainsRune(name, ' ') {
		return nil
	}
	name = " " + strings.ToLower(name) + " "
	for i := range languages {
		if l := &languages[i]; strings.Contains(" "+l.names+" ", name) {
			g := &grammars[i]
			g.once.Do(func() { g.grammar = l.grammar() })
			return &g.grammar
		}
	}
	return nil
}

func (l *language) grammar() grammar {
	g := grammar{
		language: l, comments: strings.Fields(l.comments), blocks: pairs(l.blocks), long: pairs(l.long),
		words: map[string]Kind{},
	}
	for _, word := range strings.Fields(l.keywords) {
		g.words[word] = Keyword
	}
	for _, word := range strings.Fields(l.types) {
		g.words[word] = Type
	}
	return g
}

func pairs(list string) (pairs [][2]string) {
	words := strings.Fields(list)
	for i := 0; i+1 < len(words); i += 2 {
		pairs = append(pairs, [2]string{words[i], words[i+1]})
	}
	return pairs
}
