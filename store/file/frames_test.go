package file_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/coppice-dev/coppice/internal/soak"
	"github.com/coppice-dev/coppice/store"
	"github.com/coppice-dev/coppice/store/file"
	"github.com/coppice-dev/coppice/store/storetest"
	"github.com/coppice-dev/coppice/store/vfs/vfstest"
)

const fullFrame = 1 << 20 // what a frame of an archive holds

// packedLog is a log in an archive, and where its lines and frames are.
type packedLog struct {
	lines   []string
	ends    []int // of the lines, in the plain file
	content []byte
	frames  []int // where they end in the archive; after the last comes the table
}

// packLog makes an archive of random lines.
func packLog(t *testing.T, rng *rand.Rand) packedLog {
	t.Helper()
	var p packedLog
	var plain []byte
	for size := rng.IntN(7 * fullFrame / 2); len(plain) <= size; {
		text := make([]byte, rng.IntN(30_000))
		alphabet := 1 + rng.IntN(64) // of which some compress well and some hardly
		for i := range text {
			text[i] = byte('0' + rng.IntN(alphabet))
			if text[i] == '\\' {
				text[i] = '"' + 1
			}
		}
		line := fmt.Sprintf(`{"n":%d,"text":"%s"}`, len(p.lines), text)
		plain = append(plain, line...)
		plain = append(plain, '\n')
		p.lines, p.ends = append(p.lines, line), append(p.ends, len(plain))
	}
	disk := vfstest.NewMemory()
	st := openAt(t, "/s", &file.Options{FS: disk, Sync: file.Never})
	putLog(t, disk, st.Path("a"), plain)
	must(t, st.Archive(t.Context(), "a"))
	p.content = readDisk(t, disk, archivePath(st, "a"))
	n := (len(plain) + fullFrame - 1) / fullFrame
	table, at := p.content[len(p.content)-9-8*n:], 0
	for i := range n {
		at += int(binary.LittleEndian.Uint32(table[8*i:]))
		p.frames = append(p.frames, at)
	}
	return p
}

// intact returns the lines of which no frame, nor that of the line end before, has a byte of
// the archive between two offsets.
func (p *packedLog) intact(from, to int) []string {
	isHit := func(plain int) bool {
		i := plain / fullFrame
		begin := 0
		if i > 0 {
			begin = p.frames[i-1]
		}
		return from < p.frames[i] && begin < to
	}
	var lines []string
	for i, line := range p.lines {
		end := p.ends[i]
		begin := end - len(line) - 1
		if !isHit(max(begin-1, 0)) && !isHit(begin) && !isHit(end-1) { // a line is shorter than a frame
			lines = append(lines, line)
		}
	}
	return lines
}

// damageArchive damages an archive somewhere, and returns what it did and where.
func damageArchive(rng *rand.Rand, p packedLog) (content []byte, what string, from, to int) {
	content = slices.Clone(p.content)
	size := len(content)
	from = rng.IntN(size)
	switch last := p.frames[len(p.frames)-1]; rng.IntN(4) {
	case 0: // the table
		from = last + rng.IntN(size-last)
	case 1: // beside the beginning of a frame or the table
		from = max(0, p.frames[rng.IntN(len(p.frames))]-6+rng.IntN(24))
		from = min(from, size-1)
	}
	to = from + 1
	if rng.IntN(2) == 0 {
		to = min(size, from+1+rng.IntN(1<<rng.IntN(20)))
	}
	switch rng.IntN(5) {
	case 0:
		what = "flipped"
		to = from + 1
		content[from] ^= 1 << rng.IntN(8)
	case 1:
		what = "zeroed"
		clear(content[from:to])
	case 2:
		what = "overwritten"
		for i := from; i < to; i++ {
			content[i] = byte(rng.Uint32())
		}
	case 3:
		what = "cut out"
		content = slices.Delete(content, from, to)
	default:
		what, to = "cut off", size
		content = content[:from]
	}
	return content, what, from, to
}

// Whatever happens to one place of an archive costs only the frames that it hits, and if a
// line is missing then, there is a damaged one. An append changes neither.
func TestDamagedArchive(t *testing.T) {
	t.Parallel()
	for seed := range soak.Seeds(t, 10) {
		rng := rand.New(rand.NewPCG(uint64(seed), 0))
		p := packLog(t, rng)
		for range 20 {
			content, what, from, to := damageArchive(rng, p)
			if problem := p.checkDamaged(t, content, from, to); problem != "" {
				t.Fatalf("%d to %d %s of %d bytes, where frames end at %v: %s", from, to, what, len(p.content), p.frames, problem)
			}
		}
	}
}

// checkDamaged reads an archive that was damaged between two offsets, appends to it, and says
// what is wrong.
func (p *packedLog) checkDamaged(t *testing.T, content []byte, from, to int) string {
	t.Helper()
	disk := vfstest.NewMemory()
	st := openAt(t, "/s", &file.Options{FS: disk, Sync: file.Never})
	putLog(t, disk, archivePath(st, "a"), content)
	want := p.intact(from, to)
	if err := readAll(t.Context(), st, "a"); err != nil {
		if len(want) == 0 && errors.Is(err, store.ErrCorrupt) {
			return "" // nothing is left, and the error says so
		}
		return fmt.Sprintf("%v, and %d lines are intact", err, len(want))
	}
	log := storetest.MustOpen(t, st, "a")
	lines := linesOf(t, log)
	whole := wholeLines(lines)
	missing, damaged := len(p.lines)-len(whole), len(lines)-len(whole)
	onlyTable := from >= p.frames[len(p.frames)-1] && p.ends[len(p.ends)-1]%fullFrame > 0
	switch {
	case missing > 0 && damaged == 0:
		return fmt.Sprintf("%d lines are missing, and nothing says so", missing)
	case onlyTable && missing+damaged > 0:
		return fmt.Sprintf("%d lines are missing and %d are damaged, and all frames are intact", missing, damaged)
	}
	for _, line := range whole {
		if len(want) > 0 && line == want[0] {
			want = want[1:]
		}
	}
	if len(want) > 0 {
		return fmt.Sprintf("%d lines that are intact are hidden, from %.20q… on", len(want), want[0])
	}
	storetest.MustAppend(t, log, "{}")
	if got := linesOf(t, storetest.MustOpen(t, st, "a")); !slices.Equal(got, append(lines, "{}")) {
		return fmt.Sprintf("%d lines after an append, and %d before", len(got), len(lines))
	}
	return ""
}

// A frame that was cut out as a whole is missed, although all others are intact.
func TestArchiveWithoutOneFrame(t *testing.T) {
	t.Parallel()
	// Lines that end where frames end: nothing else would show that one is missing.
	line := fmt.Sprintf("%0*d\n", fullFrame/4-1, 7)
	disk := vfstest.NewMemory()
	st := openAt(t, "/s", &file.Options{FS: disk, Sync: file.Never})
	putLog(t, disk, st.Path("a"), []byte(strings.Repeat(line, 13)))
	must(t, st.Archive(t.Context(), "a"))
	content := readDisk(t, disk, archivePath(st, "a"))
	table := content[len(content)-9-4*8:]
	packed := int(binary.LittleEndian.Uint32(table)) // of each full frame
	putLog(t, disk, archivePath(st, "a"), slices.Delete(slices.Clone(content), packed, 2*packed))
	lines := linesOf(t, storetest.MustOpen(t, st, "a"))
	if damaged := slices.ContainsFunc(lines, func(line string) bool { return strings.Contains(line, "\x00") }); len(lines) != 10 || !damaged {
		t.Errorf("%d lines, damaged %v; want 9 and a damaged one", len(lines), damaged)
	}
}
