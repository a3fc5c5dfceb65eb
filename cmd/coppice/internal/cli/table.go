package cli

import (
	"slices"
	"strings"

	"github.com/charmbracelet/x/ansi"

	"github.com/coppice-dev/coppice/render/plain"
)

// table prints rows in aligned columns. So that a line fits the terminal, the elastic
// column shrinks; then columns that may be missing are left out, those named first; and
// if that is still too wide, all columns shrink.
type table struct {
	talk    *talk
	header  []string
	right   []bool   // the columns whose cells end below each other, such as those of numbers
	elastic string   // the header of the column that is shortened; if it is gone, the last one is
	spare   []string // the headers of columns that a narrow terminal does without
	least   int      // how many columns the elastic one should have before others go
	rows    [][]string
}

// newTable returns a table without rows. A header after > is that of a column on the right.
func (t *talk) newTable(elastic string, header ...string) *table {
	made := &table{talk: t, elastic: elastic, least: minElastic}
	for _, name := range header {
		name, right := strings.CutPrefix(name, ">")
		made.header, made.right = append(made.header, name), append(made.right, right)
	}
	return made
}

const (
	columnGap = 2
	// minElastic is how much of the elastic column must be left to be worth reading.
	minElastic = 16
	minColumn  = 4 // the same for any other
)

// dropEmpty leaves out those of some columns that have nothing in them.
func (t *table) dropEmpty(headers ...string) {
	for _, header := range headers {
		at := slices.Index(t.header, header)
		if !slices.ContainsFunc(t.rows, func(row []string) bool { return row[at] != "" }) {
			t.drop(header)
		}
	}
}

// drop leaves a column out, if it is there.
func (t *table) drop(header string) {
	at := slices.Index(t.header, header)
	if at < 0 {
		return
	}
	t.header, t.right = slices.Delete(t.header, at, at+1), slices.Delete(t.right, at, at+1)
	for i := range t.rows {
		t.rows[i] = slices.Delete(t.rows[i], at, at+1)
	}
}

// shrinks returns the elastic column.
func (t *table) shrinks() int {
	if at := slices.Index(t.header, t.elastic); at >= 0 {
		return at
	}
	return len(t.header) - 1
}

// add adds a row.
func (t *table) add(cells ...string) {
	for i := range cells {
		cells[i] = plain.Flat(cells[i]) // before it is measured
	}
	t.rows = append(t.rows, cells)
}

// print writes the table. Off a terminal the cells are separated by tabs and
// nothing is shortened, so that cut and awk can read them. Without rows there is no
// header either: the command says what is not there.
func (t *table) print() error {
	if !t.talk.isTerminal() {
		for _, row := range t.rows {
			if err := t.talk.printText(strings.Join(row, "\t")); err != nil {
				return err
			}
		}
		return nil
	}
	if len(t.rows) == 0 {
		return nil
	}
	t.dropSpare()
	widths := t.widths()
	if err := t.printRow(t.header, widths, bold); err != nil {
		return err
	}
	for _, row := range t.rows {
		if err := t.printRow(row, widths, ""); err != nil {
			return err
		}
	}
	return nil
}

// natural returns how wide each column would like to be, and how wide a line is then.
func (t *table) natural() (widths []int, total int) {
	widths = make([]int, len(t.header))
	total = columnGap * (len(t.header) - 1)
	for i := range t.header {
		widths[i] = ansi.StringWidth(t.header[i])
		for _, row := range t.rows {
			widths[i] = max(widths[i], ansi.StringWidth(row[i]))
		}
		total += widths[i]
	}
	return widths, total
}

// dropSpare leaves out columns until the elastic one has room for something.
func (t *table) dropSpare() {
	limit := t.talk.width()
	for _, header := range t.spare {
		widths, total := t.natural()
		elastic := widths[t.shrinks()]
		if limit == 0 || total-elastic+min(elastic, t.least) <= limit {
			return
		}
		t.drop(header)
	}
}

// widths returns how wide each column is printed. The elastic one gives first, down to what is
// still worth reading; then the widest, again and again.
func (t *table) widths() []int {
	widths, total := t.natural()
	limit := t.talk.width()
	if limit == 0 || total <= limit {
		return widths
	}
	elastic := &widths[t.shrinks()]
	total -= *elastic
	*elastic = max(limit-total, min(*elastic, minElastic))
	for total += *elastic; total > limit; total-- {
		widest := 0
		for i := range widths {
			if widths[i] > widths[widest] {
				widest = i
			}
		}
		if widths[widest] <= minColumn {
			break
		}
		widths[widest]--
	}
	return widths
}

// printRow pads the cells by how wide they look, which is not how many bytes or characters they
// have.
func (t *table) printRow(cells []string, widths []int, c colour) error {
	var b strings.Builder
	for i, cell := range cells {
		cell = ansi.Truncate(cell, widths[i], "…")
		pad := strings.Repeat(" ", widths[i]-ansi.StringWidth(cell))
		if c != "" {
			cell = t.talk.paint(c, cell)
		}
		if t.right[i] {
			cell = pad + cell
		} else {
			cell += pad
		}
		b.WriteString(cell)
		if i < len(cells)-1 {
			b.WriteString(strings.Repeat(" ", columnGap))
		}
	}
	return t.talk.print("%s", strings.TrimRight(b.String(), " "))
}

// printList prints a list: a program gets an object a line, a person a row of a table.
func printList[T any](a *app, list []T, t *table, row func(*T) []string) error {
	if a.flags.json {
		return printObjects(a, list)
	}
	for i := range list {
		t.add(row(&list[i])...)
	}
	return t.print()
}

// printObjects prints the JSON of a list, an object a line.
func printObjects[T any](a *app, list []T) error {
	for i := range list {
		if err := a.printJSON(&list[i]); err != nil {
			return err
		}
	}
	return nil
}

// printLines prints lines of data.
func (t *talk) printLines(lines []string) error {
	for _, line := range lines {
		if err := t.print("%s", line); err != nil {
			return err
		}
	}
	return nil
}
