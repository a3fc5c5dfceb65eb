package postgres

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5/pgtype"
)

// InsertContext implements room.Tx. It hands over columns, not rows: so the statement is the
// same for any number of rows.
func (w *writer) InsertContext(ctx context.Context, table, names, tail string, args []any) error {
	if len(args) == 0 {
		return nil
	}
	count := strings.Count(names, ",") + 1
	selected := make([]string, count)
	var params, columns []string
	var arrays []any
	for i := range selected {
		array, kind, err := column(args, i, count)
		if err != nil {
			return fmt.Errorf("%s: %w", table, err)
		}
		if selected[i] = "NULL"; kind == "" {
			continue
		}
		arrays = append(arrays, array)
		selected[i] = "c" + strconv.Itoa(i)
		columns = append(columns, selected[i])
		params = append(params, "?::"+kind+"[]")
	}
	s := w.conn.translator.translate("INSERT INTO " + table + " (" + names + ") SELECT " + strings.Join(selected, ", ") +
		" FROM unnest(" + strings.Join(params, ", ") + ") AS r(" + strings.Join(columns, ", ") + ")" + tail)
	_, err := w.conn.write(ctx, s.text, arrays)
	return err
}

// column returns a column of rows as an array, and the type of its elements; "" if all of them
// are NULL.
func column(args []any, at, count int) (array any, kind string, err error) {
	rows := len(args) / count
	var numbers []pgtype.Int8
	var texts []pgtype.Text
	var blobs [][]byte
	for row := range rows {
		v, err := value(args[row*count+at])
		if err != nil {
			return nil, "", err
		}
		switch v := v.(type) {
		case int64:
			if numbers == nil {
				numbers = make([]pgtype.Int8, rows)
			}
			numbers[row] = pgtype.Int8{Int64: v, Valid: true}
		case string:
			if texts == nil {
				texts = make([]pgtype.Text, rows)
			}
			texts[row] = pgtype.Text{String: v, Valid: true}
		case []byte:
			if blobs == nil {
				blobs = make([][]byte, rows)
			}
			blobs[row] = v
		}
	}
	switch {
	case numbers != nil && texts == nil && blobs == nil:
		return numbers, "bigint", nil
	case texts != nil && numbers == nil && blobs == nil:
		return texts, "text", nil
	case blobs != nil && numbers == nil && texts == nil:
		return blobs, "bytea", nil
	case numbers == nil && texts == nil && blobs == nil:
		return nil, "", nil
	}
	return nil, "", fmt.Errorf("column %d has values of several types", at+1)
}
