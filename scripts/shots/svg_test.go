package main

import (
	"encoding/xml"
	"io"
	"strconv"
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"
)

// TestSpacesArePlaces draws text so that a renderer which leaves out spaces at the ends of an element
// shows what the terminal does.
func TestSpacesArePlaces(t *testing.T) {
	t.Parallel()
	screen := "  \x1b[1mEnter\x1b[0m open  \x1b[7m ? \x1b[0m all keys\n\x1b[1mbash\x1b[22m gh run 秋 x\n"
	var rows [2]strings.Builder
	d := xml.NewDecoder(strings.NewReader(draw(screen, size{60, 2})))
	x, y := 0.0, 0
	for {
		token, err := d.Token()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		switch token := token.(type) {
		case xml.StartElement:
			x = -1
			if token.Name.Local != "text" {
				continue
			}
			for _, a := range token.Attr {
				n, _ := strconv.ParseFloat(a.Value, 64) // classes are no numbers
				switch a.Name.Local {
				case "x":
					x = n
				case "y":
					y = int((n - 10) / charHeight)
				}
			}
		case xml.CharData:
			if x < 0 {
				continue
			}
			row := &rows[y]
			column := int((x-10)/charWidth + 0.5)
			row.WriteString(strings.Repeat(" ", max(column-ansi.StringWidth(row.String()), 0)) + strings.TrimSpace(string(token)))
		}
	}
	for i, line := range strings.Split(strings.TrimSuffix(ansi.Strip(screen), "\n"), "\n") {
		if got := rows[i].String(); got != line {
			t.Errorf("it shows %q, not %q", got, line)
		}
	}
}
