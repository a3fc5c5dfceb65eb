// Package vfstest has disks for tests.
//
//   - Memory keeps files in memory and can be cloned as a power cut would leave
//     them: data that was not synced may be lost or torn.
//   - Faulty wraps another file system, calls back before each operation, and makes
//     chosen ones fail.
package vfstest
