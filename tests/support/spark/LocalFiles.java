import java.io.FileNotFoundException;
import java.io.IOException;
import java.net.URI;
import java.net.URISyntaxException;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.attribute.PosixFileAttributes;
import java.nio.file.attribute.PosixFilePermissions;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.ChecksumFs;
import org.apache.hadoop.fs.DelegateToFileSystem;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FsConstants;
import org.apache.hadoop.fs.LocalFileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.RawLocalFileSystem;
import org.apache.hadoop.fs.permission.FsPermission;

/**
 * Hadoop's local file system. Without its native library, Hadoop starts chmod for each file that it creates, ls for
 * each file that it lists, and readlink for each file that it renames.
 */
public class LocalFiles extends LocalFileSystem {
    public LocalFiles() {
        super(new Raw());
    }

    /** The same for Hadoop's other interface. */
    public static class Context extends ChecksumFs {
        public Context(URI uri, Configuration settings) throws IOException, URISyntaxException {
            super(new RawContext(settings));
        }
    }

    private static class RawContext extends DelegateToFileSystem {
        RawContext(Configuration settings) throws IOException, URISyntaxException {
            super(FsConstants.LOCAL_FS_URI, new Raw(), settings, FsConstants.LOCAL_FS_URI.getScheme(), false);
        }

        @Override
        public int getUriDefaultPort() {
            return -1;
        }

        @Override
        public boolean isValidName(String name) {
            return true;
        }
    }

    private static class Raw extends RawLocalFileSystem {
        @Override
        public void setPermission(Path path, FsPermission permission) throws IOException {
            String text = permission.getUserAction().SYMBOL + permission.getGroupAction().SYMBOL
                + permission.getOtherAction().SYMBOL;
            Files.setPosixFilePermissions(pathToFile(path).toPath(), PosixFilePermissions.fromString(text));
        }

        @Override
        public FileStatus getFileStatus(Path path) throws IOException {
            java.nio.file.Path file = pathToFile(path).toPath();
            PosixFileAttributes found;
            try {
                found = Files.readAttributes(file, PosixFileAttributes.class);
            } catch (NoSuchFileException error) {
                throw new FileNotFoundException("File " + path + " does not exist");
            }
            String permissions = (found.isDirectory() ? "d" : "-")
                + PosixFilePermissions.toString(found.permissions());
            return new FileStatus(found.size(), found.isDirectory(), 1, getDefaultBlockSize(path),
                found.lastModifiedTime().toMillis(), found.lastAccessTime().toMillis(),
                FsPermission.valueOf(permissions), found.owner().getName(), found.group().getName(),
                makeQualified(path));
        }

        @Override
        public FileStatus getFileLinkStatus(Path path) throws IOException {
            return Files.isSymbolicLink(pathToFile(path).toPath())
                ? super.getFileLinkStatus(path)
                : getFileStatus(path);
        }
    }
}
