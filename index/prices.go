package index

import (
	_ "embed"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/pelletier/go-toml/v2"

	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store/vfs"
)

//go:embed prices.toml
var defaultPrices []byte

// Price is what a model costs, in micro-dollars per million tokens.
type Price struct {
	Input, Output, CacheRead, CacheWrite int64
	CacheHour                            int64 // for writes to a cache that keeps them for an hour
}

// Prices knows what models cost. A nil Prices knows none.
type Prices struct {
	models map[string]Price  // by the model's name, as canonicalModel has it
	names  map[string]string // of current models, as providers spell them
}

func noPrices() *Prices {
	return &Prices{models: make(map[string]Price), names: make(map[string]string)}
}

// DefaultPrices returns the prices that this package was built with. They are
// what providers published for ordinary use at the time, without discounts for
// batches or surcharges for long contexts.
func DefaultPrices() *Prices {
	p := noPrices()
	if err := p.parse(defaultPrices); err != nil {
		panic(err) // a test reads it
	}
	return p
}

// ReadPrices returns the default prices and those of a TOML file like prices.toml in this
// package. A model in the file replaces the default one of the same name.
func ReadPrices(path string) (*Prices, error) {
	data, err := vfs.ReadFile(path, vfs.SmallFile)
	if err != nil {
		return nil, err
	}
	own := noPrices()
	if err := own.parse(data); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	all := DefaultPrices()
	maps.Copy(all.models, own.models)
	maps.Copy(all.names, own.names)
	return all, nil
}

// Models returns the names of the current models with a price, in alphabetical order.
func (p *Prices) Models() []string { return slices.Sorted(maps.Values(p.names)) }

// parse adds the prices of a TOML text, which are in dollars.
func (p *Prices) parse(data []byte) error {
	var file struct {
		Models map[string]struct {
			Input      *float64 `toml:"input"`
			Output     *float64 `toml:"output"`
			CacheRead  *float64 `toml:"cache_read"`
			CacheWrite *float64 `toml:"cache_write"`
			CacheHour  *float64 `toml:"cache_write_1h"`
			Old        bool     `toml:"old"`
		} `toml:"models"`
	}
	if err := toml.Unmarshal(data, &file); err != nil {
		return err
	}
	for name, m := range file.Models {
		if m.Input == nil || m.Output == nil {
			return fmt.Errorf("model %q has no price for input or output", name)
		}
		price := Price{Input: micro(*m.Input), Output: micro(*m.Output)}
		price.CacheRead, price.CacheWrite = price.Input, price.Input
		if m.CacheRead != nil {
			price.CacheRead = micro(*m.CacheRead)
		}
		if m.CacheWrite != nil {
			price.CacheWrite = micro(*m.CacheWrite)
		}
		if price.CacheHour = 2 * price.Input; m.CacheHour != nil {
			price.CacheHour = micro(*m.CacheHour)
		}
		p.models[canonicalModel(name)] = price
		if !m.Old {
			p.names[canonicalModel(name)] = name
		}
	}
	return nil
}

func micro(dollars float64) int64 { return int64(math.Round(dollars * 1e6)) }

// versionDot is the dot of a version number, which some write as a dash.
var versionDot = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(\d)\.(\d)`) })

func canonicalModel(name string) string {
	return versionDot().ReplaceAllString(strings.ToLower(name), "$1-$2")
}

// release is what may follow a model's name without making it another model: "preview", a
// date, a number, and Bedrock's version.
var release = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(-preview|-exp|-latest)?([-@](\d{8}|\d{4}-\d\d-\d\d|\d\d-\d{2,4}|\d{3}))?(-v\d+(:\d+)?)?$`)
})

// vendor is what Bedrock writes before a model's name.
var vendor = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^([a-z]+\.)?anthropic\.`) })

// find returns the price of the model with a canonical name, or of one that differs only in
// its release.
func (p *Prices) find(name string) (Price, bool) {
	if p == nil {
		return Price{}, false
	}
	for n := len(name); n > 0; n-- {
		if price, ok := p.models[name[:n]]; ok && release().MatchString(name[n:]) {
			return price, true
		}
	}
	return Price{}, false
}

// Price returns what a model costs, and whether that is known. Names may have a
// provider before them: "anthropic/claude-sonnet-4-5".
func (p *Prices) Price(provider, model string) (Price, bool) {
	model = canonicalModel(model)
	last := model[strings.LastIndexByte(model, '/')+1:]
	for _, name := range []string{canonicalModel(provider) + "/" + model, model, last, vendor().ReplaceAllString(last, "")} {
		if price, ok := p.find(name); ok {
			return price, true
		}
	}
	return Price{}, false
}

// CostOf returns what a response costs that has no recorded cost, in micro-dollars, and whether the
// price of its model is known.
func (p *Prices) CostOf(bill *session.Bill) (microUSD int64, known bool) {
	price, known := p.Price(bill.Provider, bill.Model)
	u := &bill.Usage
	return price.cost(Usage{
		Input: int64(u.Input), Output: int64(u.Output), CacheRead: int64(u.CacheRead), CacheWrite: int64(u.CacheWrite), CacheHour: int64(min(u.CacheWriteHour, u.CacheWrite)),
	}), known
}

// cost returns what usage costs in micro-dollars, rounded to the nearest.
func (p *Price) cost(u Usage) int64 {
	const million = 1_000_000
	sum := u.Input*p.Input + u.Output*p.Output + u.CacheRead*p.CacheRead + (u.CacheWrite-u.CacheHour)*p.CacheWrite + u.CacheHour*p.CacheHour
	return (sum + million/2) / million
}
