/* A double of mdtest 4.0.0: it makes, looks at, renames, reads and removes the same number of directories and files in trees of the same
 * shape, with the same flags and report. Written from the tool's documentation and what it prints; see test/doubles/README.md. */
#include "tool.h"

enum { DIR_CREATE, DIR_STAT, DIR_RENAME, DIR_REMOVE, FILE_CREATE, FILE_STAT, FILE_READ, FILE_REMOVE, TREE_CREATE, TREE_REMOVE, KINDS };
static const char *const kinds[KINDS] = {
    "Directory creation", "Directory stat", "Directory rename", "Directory removal", "File creation",
    "File stat",          "File read",      "File removal",     "Tree creation",     "Tree removal",
};

static const char *base = "./out";
static long long iterations = 1, per_directory, items, depth, branch = 1, write_bytes, read_bytes, stride;
static int leaf_only, unique, files_only, directories_only, create_only, stat_only, read_only, remove_only, sync_writes, subset;
static long long directories, leaves;
static double *rates[KINDS];
static char *buffer;
/* test is the directory of one iteration. */
static char test[PATH_MAX / 2];

static const struct option options[] = {
    {'C', NULL, FLAG, &create_only, "only create files/dirs"},
    {'T', NULL, FLAG, &stat_only, "only stat files/dirs"},
    {'E', NULL, FLAG, &read_only, "only read files/dir"},
    {'r', NULL, FLAG, &remove_only, "only remove files or directories left behind by previous runs"},
    {'D', NULL, FLAG, &directories_only, "perform test on directories only (no files)"},
    {'F', NULL, FLAG, &files_only, "perform test on files only (no directories)"},
    {'L', NULL, FLAG, &leaf_only, "files only at leaf level of tree"},
    {'u', NULL, FLAG, &unique, "unique working directory for each task"},
    {'y', NULL, FLAG, &sync_writes, "sync file after writing"},
    {'b', NULL, NUMBER, &branch, "branching factor of hierarchical directory structure"},
    {'d', NULL, TEXT, &base, "directory or multiple directories where the test will run [dir|dir1@dir2@dir3...]"},
    {'e', NULL, SIZE, &read_bytes, "bytes to read from each file"},
    {'i', NULL, NUMBER, &iterations, "number of iterations the test will run"},
    {'I', NULL, NUMBER, &per_directory, "number of items per directory in tree"},
    {'n', NULL, NUMBER, &items, "every process will creat/stat/read/remove # directories and files"},
    {'N', NULL, NUMBER, &stride, "stride # between tasks for file/dir operation (local=0; set to 1 to avoid client cache)"},
    {'w', NULL, SIZE, &write_bytes, "bytes to write to each file after it is created"},
    {'z', NULL, NUMBER, &depth, "depth of hierarchical directory structure"},
    {0},
};

static void stamp(char *out) {
    time_t now = time(NULL);
    strftime(out, 32, "%m/%d/%Y %H:%M:%S", localtime(&now));
}

static void invalid(const char *why) {
    char when[32];
    stamp(when);
    printf("%s: Process %d: FAILED in md_validate_tests, %s\n", when, rank, why);
    fflush(stdout);
    MPI_Finalize();
    exit(1);
}

/* tree_path is directory k of the tree of a process, numbered by level: the parent of k is (k-1)/branch. */
static void tree_path(char *out, int owner, long long k) {
    long long chain[64];
    int levels = 0;
    for (; k > 0; k = (k - 1) / branch) chain[levels++] = k;
    int at = unique ? sprintf(out, "%s/mdtest_tree.%d.0", test, owner) : sprintf(out, "%s/mdtest_tree.0", test);
    while (levels--) {
        if (unique) at += sprintf(out + at, "/mdtest_tree.%d.%lld", owner, chain[levels]);
        else at += sprintf(out + at, "/mdtest_tree.%lld", chain[levels]);
    }
}

static void item_path(char *out, int owner, long long item, const char *kind) {
    long long place = item / per_directory;
    char directory[PATH_MAX];
    tree_path(directory, owner, leaf_only ? directories - leaves + place : place);
    if (snprintf(out, PATH_MAX, "%s/%s.mdtest.%d.%lld", directory, kind, owner, item) >= PATH_MAX) fatal("the name %s is too long", directory);
}

static void create_file(const char *path) {
    int fd = open(path, O_CREAT | O_RDWR, 0664);
    if (fd < 0) fatal("open64(\"%s\", 66, 0664) failed. Error: %s, (aiori-POSIX.c:569)", path, strerror(errno));
    for (long long left = write_bytes; left > 0;) {
        ssize_t written = write(fd, buffer, (size_t)left);
        if (written <= 0) fatal("write(%d) failed to write %lld bytes to %s: %s", fd, left, path, strerror(errno));
        left -= written;
    }
    if (write_bytes && sync_writes && fsync(fd)) fatal("fsync(%d) failed: %s", fd, strerror(errno));
    if (close(fd)) fatal("close(%d) failed: %s", fd, strerror(errno));
}

static void read_file(const char *path) {
    int fd = open(path, O_RDWR);
    if (fd < 0) fatal("unable to open file %s: %s", path, strerror(errno));
    for (long long left = read_bytes; left > 0;) {
        ssize_t got = read(fd, buffer, (size_t)left);
        if (got <= 0) fatal("read of %s ended before %lld bytes: %s", path, read_bytes, got ? strerror(errno) : "end of file");
        left -= got;
    }
    if (close(fd)) fatal("close(%d) failed: %s", fd, strerror(errno));
}

/* operate does one thing to one item of a process. Like mdtest, it goes on after an item that could not be looked at or removed. */
static void operate(int kind, int owner, long long item) {
    char path[PATH_MAX], other[PATH_MAX + 4];
    struct stat seen;
    const char *what = kind <= DIR_REMOVE ? "dir" : "file";
    item_path(path, owner, item, what);
    switch (kind) {
    case DIR_CREATE:
        if (mkdir(path, 0775)) fatal("unable to create directory %s: %s", path, strerror(errno));
        break;
    case DIR_STAT:
    case FILE_STAT:
        if (stat(path, &seen)) printf("WARNING: unable to stat %s %s\n", kind == DIR_STAT ? "directory" : "file", path);
        break;
    case DIR_RENAME:
        snprintf(other, sizeof other, "%s-XX", path);
        if (rename(path, other)) fatal("unable to rename directory %s: %s", path, strerror(errno));
        break;
    case DIR_REMOVE:
        snprintf(other, sizeof other, "%s-XX", path);
        if (rmdir(subset ? path : other)) printf("WARNING: unable to remove directory %s\n", path);
        break;
    case FILE_CREATE: create_file(path); break;
    case FILE_READ: read_file(path); break;
    case FILE_REMOVE:
        if (unlink(path)) printf("WARNING: unable to remove file %s\n", path);
        break;
    }
}

/* phase does one thing to all items of the process that is shift strides away, and records how many of all were done in a second. */
static void phase(int kind, int shift, long long iteration) {
    int owner = (int)((rank + shift * stride) % size);
    double begin = together();
    for (long long item = 0; item < items; item++) operate(kind, owner, item);
    rates[kind][iteration] = (double)(items * size) / (together() - begin);
}

static void tree(int kind, long long iteration) {
    char path[PATH_MAX];
    double begin = together();
    for (long long i = 0; (unique || rank == 0) && i < directories; i++) {
        tree_path(path, rank, kind == TREE_CREATE ? i : directories - 1 - i);
        if (kind == TREE_CREATE) {
            if (mkdir(path, 0775)) printf("WARNING: unable to create tree directory '%s/'\n", path);
        } else if (rmdir(path)) {
            printf("WARNING: Unable to remove directory %s/\n", path);
        }
    }
    rates[kind][iteration] = (double)(directories * (unique ? size : 1)) / (together() - begin);
}

static void iterate(long long i) {
    int all = !subset;
    snprintf(test, sizeof test, "%s/test-dir.0-%lld", base, i);
    if ((all || create_only) && rank == 0 && mkdir(test, 0775) && errno != EEXIST) printf("WARNING: Unable to create test directory %s\n", test);
    if (all || create_only) tree(TREE_CREATE, i);
    if (!files_only) {
        if (all || create_only) phase(DIR_CREATE, 0, i);
        if (all || stat_only) phase(DIR_STAT, 1, i);
        if (all) phase(DIR_RENAME, 2, i);
        if (all || remove_only) phase(DIR_REMOVE, 3, i);
    }
    if (!directories_only) {
        if (all || create_only) phase(FILE_CREATE, 0, i);
        if (all || stat_only) phase(FILE_STAT, 1, i);
        if (all || read_only) phase(FILE_READ, 2, i);
        if (all || remove_only) phase(FILE_REMOVE, 3, i);
    }
    if (all || remove_only) {
        tree(TREE_REMOVE, i);
        if (rank == 0 && rmdir(test)) printf("WARNING: unable to remove directory %s\n", test);
    }
}

static void report(void) {
    printf("\nSUMMARY rate: (of %lld iterations)\n", iterations);
    printf("   Operation                     Max            Min           Mean        Std Dev\n");
    printf("   ---------                     ---            ---           ----        -------\n");
    for (int kind = 0; kind < KINDS; kind++) {
        if ((files_only && kind <= DIR_REMOVE) || (directories_only && kind >= FILE_CREATE && kind <= FILE_REMOVE)) continue;
        const double *r = rates[kind];
        int n = (int)iterations;
        printf("   %-22s%15.3f%15.3f%15.3f%15.3f\n", kinds[kind], greatest(r, n), least(r, n), mean(r, n), deviation(r, n, 1));
    }
}

/* count finds the numbers of directories and items out of what was asked for. */
static void count(void) {
    if (files_only && directories_only) invalid("-F and -D can't be used together");
    if (iterations < 1 || branch < 1 || depth < 0 || items < 0 || per_directory < 0 || write_bytes < 0 || read_bytes < 0 || stride < 0)
        invalid("a number is too small");
    if (read_bytes > write_bytes && !stat_only && !create_only && !remove_only && !read_only) invalid("read bytes > write bytes");
    directories = leaves = 1;
    for (long long i = 0; i < depth; i++) {
        leaves *= branch;
        directories += leaves;
        if (directories > 1 << 24) invalid("too many directories");
    }
    long long places = leaf_only ? leaves : directories;
    if (items && per_directory) {
        if (items % per_directory) invalid("items must be a multiple of items per directory");
    } else if (items) {
        per_directory = items / places;
        if (!per_directory) invalid("there are fewer items than directories");
    }
    /* What does not fill the directories evenly is left out. */
    items = per_directory * places;
    if (!items) invalid("must specify items (-n) or items per directory (-I)");
}

int main(int argc, char **argv) {
    char when[32], bytes[32], used[32], inodes[32], used_inodes[32];
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    parse(argc, argv, options);
    subset = create_only || stat_only || read_only || remove_only;
    if (!read_bytes && (!subset || read_only)) {
        printf("WARNING: Read bytes is 0, thus, a read test will actually just open/close\n");
        fflush(stdout);
    }
    count_nodes();
    if (rank == 0) {
        stamp(when);
        printf("-- started at %s --\n\nmdtest-4.0.0 was launched with %d total task(s) on %d node(s)\nCommand line used: %s", when, size, nodes, argv[0]);
        for (int i = 1; i < argc; i++) printf(" '%s'", argv[i]);
        printf("\n");
    }
    count();
    for (int kind = 0; kind < KINDS; kind++) rates[kind] = calloc((size_t)iterations, sizeof(double));
    buffer = malloc((size_t)(write_bytes > read_bytes ? write_bytes : read_bytes) + 1);
    if (!buffer) fatal("out of memory");
    memset(buffer, 'm', (size_t)(write_bytes > read_bytes ? write_bytes : read_bytes));
    if (rank == 0) {
        if (mkdir(base, 0775) && errno != EEXIST) printf("WARNING: Unable to create test directory path %s\n", base);
        if (room(base, bytes, used, inodes, used_inodes))
            printf("Path                : %s\nFS                  : %s   Used FS: %s   Inodes: %s   Used Inodes: %s\n", base, bytes, used, inodes, used_inodes);
        printf("Nodemap: %s\n", node_map);
        if (stride) printf("V-0: Rank   0 Line  2537 Shifting ranks by %lld for each phase.\n", stride);
        printf("%d tasks, %lld %s\n", size, items * size, files_only ? "files" : directories_only ? "directories" : "files/directories");
        fflush(stdout);
    }
    for (long long i = 0; i < iterations; i++) iterate(i);
    fflush(stdout);
    together();
    if (rank == 0) {
        report();
        stamp(when);
        printf("-- finished at %s --\n\n", when);
    }
    MPI_Finalize();
    return 0;
}
