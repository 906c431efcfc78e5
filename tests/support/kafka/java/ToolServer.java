import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.EOFException;
import java.io.File;
import java.io.IOException;
import java.io.OutputStream;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.apache.kafka.common.utils.Exit;

/**
 * Runs Kafka's tools and the programs of this folder, one after the other in this JVM. A tool's exit ends the tool
 * and not the JVM, what it does at the end of its JVM is done then, and its static fields are new each time.
 *
 * <p>Reads requests from standard input: the number of strings, the strings (the folder of a program's classes, empty
 * for a tool; the class; its arguments), and the length and the bytes of the tool's standard input. Writes a response
 * for each to standard output: the exit status, and the length and the bytes of the tool's standard output, and of
 * its standard error.
 */
public class ToolServer {
    private static final List<String> TOOLS = List.of("org.apache.kafka.tools.", "kafka.tools.", "kafka.admin.");
    private static final Switch OUTPUT = new Switch();
    private static final Switch ERRORS = new Switch();

    /** Loads the tools' or the program's own classes anew, and takes all others from the JVM. */
    private static final class ToolLoader extends URLClassLoader {
        ToolLoader(String folder) throws IOException {
            super(places(folder), ToolServer.class.getClassLoader());
        }

        private static URL[] places(String folder) throws IOException {
            List<URL> jars = new ArrayList<>();
            if (!folder.isEmpty()) {
                jars.add(Path.of(folder).toUri().toURL());
            }
            for (String jar : System.getProperty("java.class.path").split(File.pathSeparator)) {
                if (new File(jar).getName().matches("kafka(-tools|_2\\.\\d+)-[0-9.]+\\.jar")) {
                    jars.add(new File(jar).toURI().toURL());
                }
            }
            return jars.toArray(URL[]::new);
        }

        @Override
        protected Class<?> loadClass(String name, boolean resolve) throws ClassNotFoundException {
            boolean program = name.indexOf('.') < 0;
            if (!program && TOOLS.stream().noneMatch(name::startsWith)) {
                return super.loadClass(name, resolve);
            }
            synchronized (getClassLoadingLock(name)) {
                Class<?> loaded = findLoadedClass(name);
                try {
                    return loaded == null ? findClass(name) : loaded;
                } catch (ClassNotFoundException error) {
                    return super.loadClass(name, resolve);
                }
            }
        }
    }

    /** Writes to the stream of the current run. Scala's `println` keeps the first `System.out` that it sees. */
    private static final class Switch extends OutputStream {
        private OutputStream current = OutputStream.nullOutputStream();

        @Override
        public synchronized void write(int each) throws IOException {
            current.write(each);
        }

        @Override
        public synchronized void write(byte[] bytes, int from, int count) throws IOException {
            current.write(bytes, from, count);
        }

        synchronized void to(OutputStream stream) {
            current = stream;
        }
    }

    private static final class Ended extends Error {
        Ended() {
            super("exit", null, false, false);
        }
    }

    /** One run of a tool. */
    private static final class Run {
        final ByteArrayOutputStream output = new ByteArrayOutputStream();
        final ByteArrayOutputStream errors = new ByteArrayOutputStream();
        private final List<Runnable> hooks = new ArrayList<>();
        private Integer status;

        /** Ends the tool. What it does with the error that ends it, is not what it has done. */
        private void end(int with, String message) {
            if (status == null) {
                status = with;
                if (message != null) {
                    System.err.println(message);
                }
                print(OutputStream.nullOutputStream(), OutputStream.nullOutputStream());
            }
            throw new Ended();
        }

        private static void print(OutputStream output, OutputStream errors) {
            System.out.flush();
            System.err.flush();
            OUTPUT.to(output);
            ERRORS.to(errors);
        }

        /** Runs the tool, and returns its exit status. */
        int run(String folder, String name, String[] arguments, byte[] input) throws IOException {
            Exit.setExitProcedure(this::end);
            Exit.setHaltProcedure(this::end);
            Exit.setShutdownHookAdder((called, hook) -> hooks.add(hook));
            System.setIn(new ByteArrayInputStream(input));
            print(output, errors);
            try (ToolLoader loader = new ToolLoader(folder)) {
                Thread.currentThread().setContextClassLoader(loader);
                try {
                    loader.loadClass(name).getMethod("main", String[].class).invoke(null, (Object) arguments);
                } catch (InvocationTargetException error) {
                    fail(error.getCause());
                } catch (ReflectiveOperationException error) {
                    fail(error);
                }
                print(output, errors);
                hooks.forEach(Runnable::run);
            }
            print(OutputStream.nullOutputStream(), OutputStream.nullOutputStream());
            return status == null ? 0 : status;
        }

        private void fail(Throwable error) {
            if (status == null) {
                error.printStackTrace();
                status = 1;
            }
        }
    }

    public static void main(String[] nothing) throws IOException {
        DataInputStream requests = new DataInputStream(System.in);
        DataOutputStream responses = new DataOutputStream(System.out);
        System.setOut(new PrintStream(OUTPUT, true));
        System.setErr(new PrintStream(ERRORS, true));
        while (true) {
            String[] command;
            try {
                command = new String[requests.readInt()];
            } catch (EOFException error) {
                return;
            }
            for (int index = 0; index < command.length; index++) {
                byte[] string = requests.readNBytes(requests.readUnsignedShort());
                command[index] = new String(string, StandardCharsets.UTF_8);
            }
            byte[] input = requests.readNBytes(requests.readInt());
            Run run = new Run();
            String[] arguments = Arrays.copyOfRange(command, 2, command.length);
            responses.writeInt(run.run(command[0], command[1], arguments, input));
            for (ByteArrayOutputStream written : List.of(run.output, run.errors)) {
                responses.writeInt(written.size());
                written.writeTo(responses);
            }
            responses.flush();
        }
    }
}
