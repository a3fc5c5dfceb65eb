package sqlite

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"sync"
	"unsafe"

	"modernc.org/libc"
	sqlite3 "modernc.org/sqlite/lib"
)

// # Pages with a checksum
//
// SQLite trusts what it reads: after a few bytes changed on the disk, or two pages were
// swapped, queries return too little, without an error. So each page of our file ends with a
// checksum of its content and its number. It is written with the page and checked whenever a
// page is read from the disk. A wrong page is an error that isDamage recognises, and the
// index is rebuilt before any query is answered.
//
// SQLite leaves the last bytes of each page alone if the file's header says so, as
// emptyDatabase's does. The system's VFS reads and writes the files; ours only sits between
// it and SQLite, and only for the database itself. The -wal has SQLite's own checksums; the
// first process that opens it after a crash checks them.

const (
	pageSize     = 4096
	headerSize   = 100 // of the file
	checksumSize = 4   // FTS5's pages of 4050 bytes must fit into the rest
	checkedVFS   = "coppice-checked"
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// checksum returns the checksum of a page at a place in the file.
func checksum(page []byte, at int64) uint32 {
	var number [8]byte
	binary.LittleEndian.PutUint64(number[:], uint64(at/pageSize)+1)
	return crc32.Update(crc32.Checksum(number[:], castagnoli), castagnoli, page[:pageSize-checksumSize])
}

func seal(page []byte, at int64) {
	binary.LittleEndian.PutUint32(page[pageSize-checksumSize:], checksum(page, at))
}

func isSealed(page []byte, at int64) bool {
	return binary.LittleEndian.Uint32(page[pageSize-checksumSize:]) == checksum(page, at)
}

// emptyDatabase returns a database without tables whose pages have room for checksums.
func emptyDatabase() []byte {
	page := make([]byte, pageSize)
	copy(page, "SQLite format 3\x00")
	binary.BigEndian.PutUint16(page[16:], pageSize)
	copy(page[18:], []byte{1, 1, checksumSize, 64, 32, 32}) // versions; reserved bytes; constants of the format
	binary.BigEndian.PutUint32(page[24:], 1)                // changes
	binary.BigEndian.PutUint32(page[28:], 1)                // pages
	binary.BigEndian.PutUint32(page[44:], 4)                // format of the schema
	binary.BigEndian.PutUint32(page[56:], 1)                // UTF-8
	binary.BigEndian.PutUint32(page[92:], 1)                // the change at which the number of pages was right
	page[100] = 0x0d                                        // the schema: a leaf without cells
	binary.BigEndian.PutUint16(page[105:], pageSize-checksumSize)
	seal(page, 0)
	return page
}

// The functions of SQLite's files that we wrap.
type (
	openFunc     = func(tls *libc.TLS, vfs, name, file uintptr, flags int32, outFlags uintptr) int32
	transferFunc = func(tls *libc.TLS, file, buf uintptr, size int32, at int64) int32
)

// checked is the VFS: a copy of the system's, except for opening files. SQLite keeps its
// address, so it must not move.
var checked struct {
	vfs     sqlite3.Tsqlite3_vfs
	system  uintptr // the VFS of the system
	open    openFunc
	methods sync.Map // of the system's files, by their address: *checkedMethods
}

// checkedMethods is what is done with a file, with the reading and writing of pages
// changed.
type checkedMethods struct {
	table       sqlite3.Tsqlite3_io_methods
	read, write transferFunc
}

// registerChecked makes the VFS known to SQLite.
var registerChecked = sync.OnceValue(func() error {
	tls := libc.NewTLS()
	defer tls.Close()
	checked.system = sqlite3.Xsqlite3_vfs_find(tls, 0)
	if checked.system == 0 {
		return errors.New("SQLite has no default VFS on this system")
	}
	checked.vfs = *at[sqlite3.Tsqlite3_vfs](checked.system)
	name, err := libc.CString(checkedVFS)
	if err != nil {
		return err
	}
	checked.open = function[openFunc](checked.vfs.FxOpen)
	checked.vfs.FpNext, checked.vfs.FzName, checked.vfs.FxOpen = 0, name, pointer(openChecked)
	if rc := sqlite3.Xsqlite3_vfs_register(tls, uintptr(unsafe.Pointer(&checked.vfs)), 0); rc != sqlite3.SQLITE_OK {
		return errors.New("SQLite refused to register our VFS")
	}
	return nil
})

func openChecked(tls *libc.TLS, _, name, file uintptr, flags int32, outFlags uintptr) int32 {
	rc := checked.open(tls, checked.system, name, file, flags, outFlags)
	f := at[sqlite3.Tsqlite3_file](file)
	if rc == sqlite3.SQLITE_OK && flags&sqlite3.SQLITE_OPEN_MAIN_DB != 0 && f.FpMethods != 0 {
		f.FpMethods = uintptr(unsafe.Pointer(&methodsOver(f.FpMethods).table))
	}
	return rc
}

// methodsOver returns methods that wrap others.
func methodsOver(system uintptr) *checkedMethods {
	if m, ok := checked.methods.Load(system); ok {
		return m.(*checkedMethods)
	}
	m := &checkedMethods{table: *at[sqlite3.Tsqlite3_io_methods](system)}
	m.read, m.write = function[transferFunc](m.table.FxRead), function[transferFunc](m.table.FxWrite)
	m.table.FxRead, m.table.FxWrite = pointer(readChecked), pointer(writeChecked)
	m.table.FiVersion = min(m.table.FiVersion, 2) // pages are read, and not mapped into memory
	kept, _ := checked.methods.LoadOrStore(system, m)
	return kept.(*checkedMethods)
}

// ourMethods returns the methods of a file that openChecked opened.
func ourMethods(file uintptr) *checkedMethods {
	return at[checkedMethods](at[sqlite3.Tsqlite3_file](file).FpMethods) // the table is its first field
}

// readChecked reads from the database. SQLite reads whole pages, parts of the header, and,
// straight into a long value, parts of its overflow pages without their last bytes. For an
// overflow page, readChecked reads and checks the whole page.
func readChecked(tls *libc.TLS, file, buf uintptr, size int32, from int64) int32 {
	system := ourMethods(file).read
	switch {
	case size == pageSize:
		return readPage(tls, system, file, buf, from)
	case from < headerSize:
		return system(tls, file, buf, size, from)
	case size > pageSize || from%pageSize != 0:
		return sqlite3.SQLITE_IOERR_DATA // this is no file of ours
	}
	whole := tls.Alloc(pageSize)
	defer tls.Free(pageSize)
	rc := readPage(tls, system, file, whole, from)
	copy(unsafe.Slice(at[byte](buf), size), pageAt(whole))
	return rc
}

func readPage(tls *libc.TLS, system transferFunc, file, buf uintptr, from int64) int32 {
	rc := system(tls, file, buf, pageSize, from)
	if rc == sqlite3.SQLITE_IOERR_SHORT_READ || rc == sqlite3.SQLITE_OK && !isSealed(pageAt(buf), from) {
		return sqlite3.SQLITE_IOERR_DATA
	}
	return rc
}

func writeChecked(tls *libc.TLS, file, buf uintptr, size int32, to int64) int32 {
	if size != pageSize || to == 0 && pageAt(buf)[20] != checksumSize {
		return sqlite3.SQLITE_IOERR_DATA // this is no file of ours
	}
	seal(pageAt(buf), to)
	return ourMethods(file).write(tls, file, buf, size, to)
}

func pageAt(address uintptr) []byte { return unsafe.Slice(at[byte](address), pageSize) }

// at returns what is at an address in SQLite's memory, which the garbage collector does
// not know.
func at[T any](address uintptr) *T { return *(**T)(unsafe.Pointer(&address)) }

// pointer returns the address of a function as SQLite calls it, and function the reverse.
func pointer[F any](f F) uintptr { return *(*uintptr)(unsafe.Pointer(&f)) }

func function[F any](address uintptr) F { return *(*F)(unsafe.Pointer(&address)) }
