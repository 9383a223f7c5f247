// Boost.JSON's one translation unit: the oracle reads bodies with another parser than the gateway.
#include <boost/json/src.hpp>
