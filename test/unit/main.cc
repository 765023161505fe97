// The unit tests' main(). A test file belongs to the source file of the same path under src/.
#define BOOST_TEST_MODULE lokadb
#include <boost/test/unit_test.hpp>
